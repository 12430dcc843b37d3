import type { Operation } from '../../src/contract/operation.ts'
import { type OperationName, operations } from '../../src/contract/operations.ts'
import { newToken } from '../../src/tokens/format.ts'
import { call } from '../support/wire.ts'

/** Everything that does not open a door. */
function wrongCredentials(): Record<string, string>[] {
  return [
    {},
    { Authorization: '' },
    { Authorization: 'Bearer' },
    { Authorization: 'Basic dXNlcjpwYXNzd29yZA==' },
    { Authorization: 'Bearer not-a-token' },
    { Authorization: `Bearer ${newToken()}` },
  ]
}

/** The operations that answer anything but 401 to somebody without a token that is known. */
export async function findOpenOperations(url: string): Promise<string[]> {
  const open = new Set<string>()
  for (const [name, operation] of Object.entries(operations) as [OperationName, Operation][]) {
    const methods = operation.method === 'GET' ? ['GET', 'HEAD'] : [operation.method]
    const path = operation.path.replace('{id}', '1')
    for (const method of methods)
      for (const credentials of wrongCredentials()) {
        const body = operation.body ? { body: '{"id":1,"name":"x"}' } : {}
        const headers = { 'Content-Type': 'application/json', ...credentials }
        const { status } = await call(url, { method, path, headers, ...body })
        if (status !== 401) open.add(name)
      }
  }
  return [...open]
}

const prefixLength = 'plst_'.length

/** What gives a token away: itself, each half of its secret, and itself as others would write it. */
function toTraces(token: string): Buffer[] {
  const secret = token.slice(prefixLength)
  const middle = secret.length / 2
  const texts = [secret.slice(0, middle), secret.slice(middle)]
  const bytes = Buffer.from(token)
  return [...texts, bytes.toString('hex'), bytes.toString('base64')].map((text) =>
    Buffer.from(text),
  )
}

/** The places, by name, in which a token or a part of it can be read. */
export function findSecret(
  token: string,
  places: Readonly<Record<string, string | Buffer>>,
): string[] {
  const traces = toTraces(token)
  return Object.entries(places)
    .filter(([, content]) => {
      const bytes = Buffer.from(content)
      return traces.some((trace) => bytes.includes(trace))
    })
    .map(([name]) => name)
}
