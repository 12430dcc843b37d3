import type { ErrorNumber } from './errors.ts'
import type { Operation, Page } from './operation.ts'

/** The failures of HTTP itself, on every path: they are found before the path is looked at. */
export const protocolFailures: readonly ErrorNumber[] = [40000, 40800, 41400, 41700, 43100, 50500]
/** The failures of a token, found before its requests are counted. */
export const tokenFailures: readonly ErrorNumber[] = [40100, 40101, 40102, 40300]
const operationFailures: readonly ErrorNumber[] = [42900, 50000, 50300, 50301]
const bodyFailures: readonly ErrorNumber[] = [40001, 40002, 40003, 41300, 41500]
const writeFailures: readonly ErrorNumber[] = [50400, 50700]

/** Every failure that an operation can answer, in ascending order. */
export function failuresOf(operation: Operation): ErrorNumber[] {
  const { method, path, parameters, body, failures } = operation
  return ascending([
    ...protocolFailures,
    ...tokenFailures,
    ...operationFailures,
    ...(path.includes('{id}') ? [40004 as const] : []),
    ...(parameters.length > 0 ? [40005 as const] : []),
    ...(parameters.includes('If-Match') ? [41200 as const] : []),
    ...(body ? bodyFailures : []),
    ...(method === 'GET' ? [] : writeFailures),
    ...failures,
  ])
}

/** Every failure that a page can answer, in ascending order. */
export function failuresOfPage(page: Page): ErrorNumber[] {
  return ascending([...protocolFailures, ...page.failures])
}

/** Every failure of OPTIONS on a path: that of a page is answered under any load. */
export function failuresOfOptions(path: 'of a page' | 'of operations'): ErrorNumber[] {
  return ascending([...protocolFailures, ...(path === 'of a page' ? [] : [50300 as const])])
}

function ascending(numbers: ErrorNumber[]): ErrorNumber[] {
  return numbers.sort((a, b) => a - b)
}
