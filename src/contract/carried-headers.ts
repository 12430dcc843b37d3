import { type ErrorNumber, toStatus } from './errors.ts'
import { bareFailures } from './failures.ts'
import type { HeaderName } from './headers.ts'

/** The headers of an answer: those that it always carries, and those that it sometimes carries. */
export interface CarriedHeaders {
  readonly always: readonly HeaderName[]
  readonly sometimes: readonly HeaderName[]
}

/** The kinds of requests whose answers carry different headers. */
export type Subject = 'operation' | 'health'

/** The headers of every answer. The optional ones are those of CORS. */
const everyAnswer: CarriedHeaders = {
  always: ['X-Request-Id', 'X-Content-Type-Options'],
  sometimes: ['Vary', 'Access-Control-Allow-Origin', 'Access-Control-Expose-Headers'],
}
const cached: CarriedHeaders = { always: ['Cache-Control'], sometimes: [] }
const rateLimit: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy']

const bySubject: Record<Subject, CarriedHeaders> = {
  operation: join(everyAnswer, cached, { always: [], sometimes: rateLimit }),
  health: join(everyAnswer, cached),
}

/** The headers of a success, including its own. */
export function headersOfSuccess(subject: Subject, own: CarriedHeaders): CarriedHeaders {
  return join(bySubject[subject], own)
}

/** The headers of an answer that can have any of these error numbers. */
export function headersOfFailures(numbers: readonly ErrorNumber[]): CarriedHeaders {
  const each = numbers.map(headersOfFailure)
  const [first, ...others] = each.map(({ always }) => new Set(always))
  const always = others.reduce((shared, more) => shared.intersection(more), first ?? new Set())
  const all = each.flatMap((carried) => [...carried.always, ...carried.sometimes])
  return join({ always: [...always], sometimes: all })
}

/** Those of an operation: a health check has the same ones, except for the rate limit. */
function headersOfFailure(number: ErrorNumber): CarriedHeaders {
  const own = headersOfNumber(number)
  // These are answered before any operation or check is reached.
  if (bareFailures.includes(number)) return join(own, everyAnswer)
  return join(own, bySubject.operation)
}

function headersOfNumber(number: ErrorNumber): CarriedHeaders {
  const status = toStatus(number)
  if (number === 40000) return { always: [], sometimes: ['WWW-Authenticate'] }
  if (status === 401 || status === 403) return { always: ['WWW-Authenticate'], sometimes: [] }
  // The server refuses a request that comes too slowly, but the operation refuses an import.
  if (number === 40800) return { always: [], sometimes: [...cached.always, ...rateLimit] }
  if (number === 42900) return { always: ['Retry-After', ...rateLimit], sometimes: [] }
  if (status === 503) return { always: ['Retry-After'], sometimes: [] }
  return { always: [], sometimes: [] }
}

/** Joins several rules. A header that is always there by one of them is always there. */
function join(...rules: CarriedHeaders[]): CarriedHeaders {
  const always = new Set(rules.flatMap((rule) => rule.always))
  const sometimes = new Set(rules.flatMap((rule) => rule.sometimes)).difference(always)
  return { always: [...always], sometimes: [...sometimes] }
}
