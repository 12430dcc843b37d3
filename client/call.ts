import type { ErrorBody } from '../src/contract/shapes.ts'
import { type Answer, attempt, type Request } from './attempt.ts'
import { PlantStoreError, PositionGoneError } from './errors.ts'
import type { Link } from './options.ts'
import { maxRetryAfterMs, pause, retryPauses, toJitterMs, toRetryAfterMs } from './pauses.ts'

/** The service, or a proxy before it, could not serve the request. */
const retriedStatuses = [429, 502, 503, 504]
/** These answers say that nothing was stored. After the others, something may be. */
const refusedStatuses = [429, 503]

/** One call, which may take several requests. */
export interface Call<Result> {
  readonly request: Request
  readonly signal: AbortSignal | undefined
  /** The result of a final answer. `lost` is an earlier attempt that may have succeeded. */
  read(answer: Answer, lost: PlantStoreError | undefined): Result | Promise<Result>
  /** After a lost answer: the result if the attempt did succeed; undefined to try again. */
  look?(lost: PlantStoreError): Promise<Result | undefined>
}

/** Sends the request until an answer is final, as often as the options allow. */
export async function run<Result>(link: Link, call: Call<Result>): Promise<Result> {
  let lost: PlantStoreError | undefined
  for (let retry = 0; ; retry++) {
    const answer = await attempt(link, call.request, call.signal)
    const failure = toRetried(answer)
    if (failure === undefined) return call.read(answer as Answer, lost)
    const pauseMs = toPauseMs(answer, retry)
    if (retry >= link.retries || pauseMs > maxRetryAfterMs) throw failure
    if (!refusedStatuses.includes(failure.status ?? 0)) lost = failure
    await pause(pauseMs, call.signal)
    const found = lost && (await call.look?.(lost))
    if (found !== undefined) return found
  }
}

/** The failure of an attempt that is worth another one. */
export function toRetried(answer: Answer | PlantStoreError): PlantStoreError | undefined {
  if (answer instanceof PlantStoreError) return answer
  return retriedStatuses.includes(answer.status) ? toFailure(answer) : undefined
}

export function toPauseMs(answer: Answer | PlantStoreError, retry: number): number {
  const jitterMs = toJitterMs(retry, retryPauses)
  return answer instanceof PlantStoreError ? jitterMs : toRetryAfterMs(answer.headers) + jitterMs
}

/** The failure that an answer tells of, with whatever is known if it is none of ours. */
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

function toErrorBody(text: string): ErrorBody | { error: undefined; message: undefined } {
  try {
    const { error, message } = JSON.parse(text) as Partial<ErrorBody>
    if (typeof error === 'number' && typeof message === 'string') return { error, message }
  } catch {}
  return { error: undefined, message: undefined }
}
