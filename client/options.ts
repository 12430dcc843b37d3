import type { PlantStoreError } from './plant-store-error.ts'

/** How to reach a service. */
export interface PlantStoreOptions {
  /** The address of the service, such as `http://127.0.0.1:3000`. It may have a path. */
  readonly url: string | URL
  /** A token of the service. */
  readonly token: string
  /** Sends the requests, instead of the `fetch` of the runtime. */
  readonly fetch?: typeof fetch | undefined
  /** How long one attempt may take, in milliseconds: 30,000 unless given. */
  readonly timeoutMs?: number | undefined
  /** How often a call is tried again: 5 times unless given, and 0 for never. */
  readonly retries?: number | undefined
  /** Called for each failed attempt that is repeated after a pause. */
  readonly onRetry?: ((failure: PlantStoreError, pauseMs: number) => void) | undefined
}

/** The checked options. */
export interface Link {
  readonly url: string
  readonly authorization: string
  readonly fetch: typeof fetch
  readonly retries: number
  onRetry(failure: PlantStoreError, pauseMs: number): void
  /** How long one attempt may take. */
  readonly timeoutMs: number
  /** How long a stream of events may be silent. */
  readonly silenceMs: number
}

/** The service sends something at least every 15 s. */
const silenceMs = 40_000
const maxTimeoutMs = 2 ** 31 - 1
const maxRetries = 100

/** Checks the options. Throws a TypeError that names the wrong one, and never shows the token. */
export function toLink(options: PlantStoreOptions): Link {
  const { url, token, fetch: send, timeoutMs = 30_000, retries = 5, onRetry } = options
  check(
    typeof token === 'string' && /^[!-~]+$/.test(token),
    'token must be a string of visible ASCII characters.',
  )
  check(
    send === undefined || typeof send === 'function',
    'fetch must be a function like the `fetch` of the runtime.',
  )
  check(onRetry === undefined || typeof onRetry === 'function', 'onRetry must be a function.')
  requireWithin('timeoutMs', timeoutMs, 1, maxTimeoutMs)
  requireWithin('retries', retries, 0, maxRetries)
  return {
    url: toBaseUrl(url),
    authorization: `Bearer ${token}`,
    // The fetch of a browser must not be called as the method of another object.
    fetch: (input, init) => (send ?? fetch)(input, init),
    retries,
    onRetry: (failure, pauseMs) => onRetry?.(failure, pauseMs),
    timeoutMs,
    silenceMs,
  }
}

function toBaseUrl(address: string | URL): string {
  const url = URL.canParse(`${address}`) ? new URL(address) : undefined
  check(
    url !== undefined &&
      /^https?:$/.test(url.protocol) &&
      `${url.username}${url.password}${url.search}${url.hash}` === '',
    'url must be the http or https address of a service, such as http://127.0.0.1:3000, ' +
      'without credentials, query or fragment.',
  )
  // `href` may end in a `?` or `#` with nothing after it.
  return (url.origin + url.pathname).replace(/\/+$/, '')
}

function requireWithin(name: string, value: number, least: number, most: number): void {
  check(
    Number.isInteger(value) && value >= least && value <= most,
    `${name} must be an integer from ${least} to ${most}.`,
  )
}

function check(isRight: boolean, sentence: string): asserts isRight {
  if (!isRight) throw new TypeError(sentence)
}
