import type { ErrorNumber } from './errors.ts'
import type { HealthCheck, Operation } from './operation.ts'

/** The failures of HTTP and of the connection, on every path, before a request is routed. */
export const protocolFailures: readonly ErrorNumber[] = [
  40000, 40800, 41400, 41700, 43100, 50300, 50500,
]
/** The failures that are answered before an operation or a page adds its headers. */
export const bareFailures: readonly ErrorNumber[] = [...protocolFailures, 40400]
const operationFailures: readonly ErrorNumber[] = [
  40100, 40101, 40102, 40300, 42900, 50000, 50301, 50302,
]
const bodyFailures: readonly ErrorNumber[] = [40001, 40002, 40003, 41500]
const fileFailures: readonly ErrorNumber[] = [40002, 41500]
/** Every write reads a body, even if only to discard it. */
const writeFailures: readonly ErrorNumber[] = [41300, 50400, 50700]

/** Every failure that an operation can answer, in ascending order. */
export function failuresOf(operation: Operation): ErrorNumber[] {
  const { method, path, parameters, body, failures } = operation
  return ascending([
    ...protocolFailures,
    ...operationFailures,
    ...(path.includes('{id}') ? [40004 as const] : []),
    ...(parameters.length > 0 ? [40005 as const] : []),
    ...(parameters.includes('If-None-Match') ? [41200 as const] : []),
    ...(body ? ('shape' in body ? bodyFailures : fileFailures) : []),
    ...(method === 'GET' ? [] : writeFailures),
    ...failures,
  ])
}

/** Every failure that a health check can answer, in ascending order. */
export function failuresOfCheck({ failures }: HealthCheck): ErrorNumber[] {
  return ascending([...protocolFailures, ...failures])
}

function ascending(numbers: ErrorNumber[]): ErrorNumber[] {
  return numbers.sort((a, b) => a - b)
}
