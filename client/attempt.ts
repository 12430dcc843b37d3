import { untilAborted } from './aborts.ts'
import { PlantStoreError } from './errors.ts'
import type { Link } from './options.ts'
import type { TimeLimit } from './time-limit.ts'

/** A request, as `RequestOf` types it for each operation. */
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

/** The signal of one attempt: it aborts with that of the caller, and after a time. */
export interface Guard {
  readonly signal: AbortSignal
  /** Starts the time anew. */
  arm(limit: TimeLimit): void
  disarm(): void
  /** Leaves neither a timer nor a listener behind. */
  close(): void
}

export function openGuard(caller: AbortSignal | undefined): Guard {
  const controller = new AbortController()
  const abort = () => controller.abort(caller?.reason)
  let armed: TimeLimit | undefined
  caller?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    arm(limit) {
      armed?.stop(controller)
      armed = limit
      limit.start(controller)
    },
    disarm() {
      armed?.stop(controller)
    },
    close() {
      armed?.stop(controller)
      caller?.removeEventListener('abort', abort)
    },
  }
}

/** Sends a request once. Rejects with the reason of the caller's signal if that aborts. */
export async function attempt(
  link: Link,
  request: Request,
  caller: AbortSignal | undefined,
): Promise<Answer | PlantStoreError> {
  caller?.throwIfAborted()
  const guard = openGuard(caller)
  guard.arm(link.answerLimit)
  let response: Response | undefined
  try {
    response = await open(link, request, guard.signal)
    const text = await untilAborted(response.text(), guard.signal)
    return { status: response.status, headers: response.headers, text }
  } catch (cause) {
    caller?.throwIfAborted()
    return toLost(link, response, cause)
  } finally {
    guard.close()
  }
}

/** Sends a request. The response has its status and headers; its body is still to be read. */
export function open(
  { url, authorization, fetch }: Link,
  { method, path, query, headers, body, mediaType = 'application/json' }: Request,
  signal: AbortSignal,
): Promise<Response> {
  const fields: Record<string, string> = { Authorization: authorization }
  if (body !== undefined) fields['Content-Type'] = mediaType
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) fields[name] = String(value)
  }
  // Following a redirect would turn a POST into a GET, and could show the token to another host.
  const init: RequestInit = { method, headers: fields, redirect: 'manual', signal }
  if (body !== undefined) init.body = body
  // With its cache, Chromium may send a write twice if a read of the same plant was broken off.
  if (method !== 'GET') init.cache = 'no-store'
  // Not every `fetch` that a caller passes looks at the signal.
  return untilAborted(fetch(url + path + toQueryString(query), init), signal)
}

function toQueryString(query: Values | undefined): string {
  if (query === undefined) return ''
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

/** The failure of an attempt whose answer did not arrive, or not whole. */
export function toLost(
  { url }: Link,
  response: Response | undefined,
  cause: unknown,
): PlantStoreError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new PlantStoreError(`The connection to ${url} was lost: ${reason.replace(/\.?$/, '.')}`, {
    status: response?.status,
    requestId: response?.headers.get('X-Request-Id') ?? undefined,
    cause,
  })
}
