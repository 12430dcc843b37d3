import { PlantStoreError, PositionGoneError } from './plant-store-error.ts'

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
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly retries: number
  readonly onRetry: (failure: PlantStoreError, pauseMs: number) => void
  readonly timeoutMs: number
  readonly silenceMs: number
}

/** How long a stream of events may be silent. The contract promises something every 15 s. */
const silenceMs = 40_000
const maxTimeoutMs = 2 ** 31 - 1
const maxRetries = 100

/** Checks the options. Throws a TypeError that names the wrong one, and never shows the token. */
export function toLink(options: PlantStoreOptions): Link {
  const { url, token, fetch: send, timeoutMs = 30_000, retries = 5, onRetry = () => {} } = options
  check(
    typeof token === 'string' && /^[!-~]+$/.test(token),
    'token must be a string of visible ASCII characters.',
  )
  check(
    send === undefined || typeof send === 'function',
    'fetch must be a function like the `fetch` of the runtime.',
  )
  check(typeof onRetry === 'function', 'onRetry must be a function.')
  requireWithin('timeoutMs', timeoutMs, 1, maxTimeoutMs)
  requireWithin('retries', retries, 0, maxRetries)
  return {
    url: toBaseUrl(url),
    authorization: `Bearer ${token}`,
    // The fetch of a browser must not be called as the method of another object.
    fetch: (url, init) => (send ?? fetch)(url, init),
    retries,
    onRetry,
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

export interface Request {
  readonly method: string
  readonly path: string
  readonly query?: Values
  readonly headers?: Values
  readonly body?: string
  readonly mediaType?: string
}

type Values = Readonly<Record<string, string | number | bigint | undefined>>

/** An answer, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** One call, which may take several requests. */
export interface Call<Result> {
  readonly request: Request
  readonly signal: AbortSignal | undefined
  /** The result of a final answer. An earlier attempt may have succeeded if its answer was lost. */
  read(answer: Answer, wasLost: boolean): Result
  /** After a lost answer: the result if the attempt did succeed; undefined if it did not. */
  look?(lost: PlantStoreError): Promise<Result | undefined>
}

/** The service, or a proxy in front of it, could not serve the request. */
const retriedStatuses = [429, 502, 503, 504]
/** A call never waits longer than this for its next attempt, whatever the service asks for. */
const maxPauseMs = 60_000

/** Sends the request until an answer is final, as often as the options allow. */
export async function run<Result>(link: Link, call: Call<Result>): Promise<Result> {
  const request = toFetched(link, call.request)
  let lost: PlantStoreError | undefined
  for (let retry = 0; ; retry++) {
    const answer = await attempt(link, request, call.signal)
    const failure = toRetried(answer)
    if (failure === undefined) {
      const final = answer as Answer
      if (lost && !judgesWrite(final)) throw toUnknown(lost, toFailure(final))
      const found = lost && final.status === 412 ? await call.look?.(lost) : undefined
      return found ?? call.read(final, lost !== undefined)
    }
    if (call.request.method !== 'GET' && !isRefusal(failure)) lost = failure
    const isRetried = await waitToRetry(link, answer, failure, retry, call.signal)
    // A refusal would say that nothing was stored.
    if (!isRetried) throw lost ?? failure
    const found = lost && (await call.look?.(lost))
    if (found !== undefined) return found
  }
}

/**
 * Whether a retried answer says that nothing was stored. After the others, something may be: a
 * proxy may answer 503 although it has passed the request on.
 */
function isRefusal({ status, error }: PlantStoreError): boolean {
  return status === 429 || (status === 503 && error !== undefined)
}

/** Whether a final answer is about the write itself, not about the token or the service. */
function judgesWrite({ status }: Answer): boolean {
  return status < 500 && status !== 401 && status !== 403
}

/** The failure of a call whose answer was lost, and which could not find out what became of it. */
export function toUnknown(lost: PlantStoreError, cause: unknown): PlantStoreError {
  return new PlantStoreError(lost.message, { ...lost, cause })
}

/** Sends a request once. Rejects with the reason of the caller's signal if that aborts. */
async function attempt(
  link: Link,
  request: Fetched,
  caller: AbortSignal | undefined,
): Promise<Answer | PlantStoreError> {
  caller?.throwIfAborted()
  const limit = new AbortController()
  const signal = joinSignals(caller, limit.signal)
  const timer = abortAfter(link.timeoutMs, limit)
  let response: Response | undefined
  try {
    response = await link.fetch(request.url, { ...request.init, signal })
    return await readAnswer(response)
  } catch (cause) {
    caller?.throwIfAborted()
    // The answer is too large, and would be again.
    if (cause instanceof PlantStoreError) throw cause
    return toLost(link, response, limit.signal.reason ?? cause)
  } finally {
    clearTimeout(timer)
  }
}

/** A request as `fetch` takes it. */
interface Fetched {
  readonly url: string
  readonly init: RequestInit
}

/**
 * Throws what no header or URL can hold. `fetch` would report it like a lost connection.
 */
export function toFetched(
  { url, authorization }: Link,
  { method, path, query, headers, body, mediaType = 'application/json' }: Request,
): Fetched {
  const fields: Record<string, string> = { Authorization: authorization }
  if (body !== undefined) fields['Content-Type'] = mediaType
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) fields[name] = String(value)
  }
  // Following a redirect would turn a POST into a GET, and could show the token to another host.
  const init: RequestInit = { method, headers: new Headers(fields), redirect: 'manual' }
  if (body !== undefined) init.body = body
  // With its cache, Chromium may send a write twice if a read of the same plant was aborted.
  if (method !== 'GET') init.cache = 'no-store'
  return { url: url + path + toQueryString(query), init }
}

function toQueryString(query: Values = {}): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

/** More than any answer or event, even with a plant of 1 MiB that an earlier release stored. */
const maxMiB = 16

/** The size of an answer, or of an event, with one more chunk. Throws if that is too large. */
export function addChunk(size: number, chunk: Uint8Array, response?: Response): number {
  const sum = size + chunk.length
  if (sum <= maxMiB * 1024 * 1024) return sum
  throw new PlantStoreError(`The answer of the service exceeds ${maxMiB} MiB: check the url.`, {
    status: response?.status,
    requestId: response?.headers.get('X-Request-Id') ?? undefined,
  })
}

/** Reads an answer to its end. */
export async function readAnswer(response: Response): Promise<Answer> {
  const { status, headers, body } = response
  return { status, headers, text: body === null ? '' : await readText(body, response) }
}

async function readText(body: ReadableStream<Uint8Array>, response: Response): Promise<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (let size = 0; ; ) {
      const { done, value } = await reader.read()
      if (done) return text + decoder.decode()
      size = addChunk(size, value, response)
      text += decoder.decode(value, { stream: true })
    }
  } finally {
    // An answer that is too large is not read to its end.
    reader.cancel().catch(() => {})
  }
}

/** The failure of an attempt whose answer did not arrive, or only in part. */
export function toLost(
  { url }: Link,
  response: Response | undefined,
  cause: unknown,
): PlantStoreError {
  // Node.js says why only in the cause of its error.
  const { cause: deeper = cause } = Object(cause) as { cause?: unknown }
  // Where several addresses of a host were tried, there is only a code.
  const { message: words, code } = Object(deeper) as { message?: string; code?: string }
  const reason = words || code || String(deeper)
  const message = `The connection to ${url} was lost: ${reason.replace(/\.?$/, '.')}`
  return new PlantStoreError(message, {
    status: response?.status,
    requestId: response?.headers.get('X-Request-Id') ?? undefined,
    cause,
  })
}

/** The failure of an attempt that is worth a retry; undefined if its answer is final. */
export function toRetried(answer: Answer | PlantStoreError): PlantStoreError | undefined {
  if (answer instanceof PlantStoreError) return answer
  return retriedStatuses.includes(answer.status) ? toFailure(answer) : undefined
}

/** The failure that an answer reports, or what is known of an answer that is not ours. */
export function toFailure({ status, headers, text }: Answer, cause?: unknown): PlantStoreError {
  const requestId = headers.get('X-Request-Id') ?? undefined
  const { error, message } = toErrorBody(text)
  if (error === undefined || status < 400) {
    const what = status === 0 || (status >= 300 && status < 400) ? 'a redirect' : `${status}`
    return new PlantStoreError(
      `The answer (${what}) is not that of a Plant Store: check the url.`,
      { status: status || undefined, requestId, cause },
    )
  }
  const Kind = error === 41000 ? PositionGoneError : PlantStoreError
  return new Kind(message, { status, error, requestId, cause })
}

function toErrorBody(text: string): { error?: number; message: string } {
  try {
    const { error, message } = JSON.parse(text)
    if (typeof error === 'number' && typeof message === 'string') return { error, message }
  } catch {}
  return { message: '' }
}

/**
 * Waits before the next attempt: as long as `Retry-After` asks for, plus a random time. Resolves to
 * false if there is no next attempt, because no retry is left or the pause would exceed a minute.
 * With endless retries, such a pause is a minute.
 */
export async function waitToRetry(
  { retries, onRetry }: Link,
  answer: Answer | PlantStoreError,
  failure: PlantStoreError,
  retry: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const wantedMs = answer instanceof PlantStoreError ? 0 : toRetryAfterMs(answer.headers)
  const neededMs = wantedMs + toJitterMs(retry, 250, 8_000)
  const isEndless = retries === Number.POSITIVE_INFINITY
  if (!isEndless && (retry >= retries || neededMs > maxPauseMs)) return false
  const pauseMs = Math.min(neededMs, maxPauseMs)
  onRetry(failure, pauseMs)
  await pause(pauseMs, signal)
  return true
}

/** A random pause below a bound that doubles with each retry, so that clients spread out. */
export function toJitterMs(retry: number, firstMs: number, maxMs: number): number {
  return Math.random() * Math.min(firstMs * 2 ** retry, maxMs)
}

/** The pause that `Retry-After` asks for; 0 if it is neither a number of seconds nor a date. */
function toRetryAfterMs(headers: Headers): number {
  const text = headers.get('Retry-After') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return ms > 0 ? ms : 0
}

/** Waits, or rejects with the reason of the signal as soon as that aborts. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const waiting = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await untilAborted(waiting, signal).finally(() => clearTimeout(timer))
}

/**
 * Starts the time limit of an attempt; clear the timer when it ends. `AbortSignal.timeout` cannot
 * be cleared: joined with a signal of the caller, it would keep each request in memory for 30 s.
 */
export function abortAfter(ms: number, work: AbortController): ReturnType<typeof setTimeout> {
  return setTimeout(() => work.abort(new Error(`No answer within ${ms} ms.`)), ms)
}

export function joinSignals(caller: AbortSignal | undefined, own: AbortSignal): AbortSignal {
  return caller === undefined ? own : AbortSignal.any([caller, own])
}

/** Settles as the work does, or rejects with the reason of the signal as soon as that aborts. */
export function untilAborted<Result>(
  work: Result | PromiseLike<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const working = Promise.resolve(work)
  if (signal === undefined) return working
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    working.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
