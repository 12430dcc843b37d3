import type { Operation } from '../../../src/contract/operation.ts'
import { type OperationName, operations } from '../../../src/contract/operations.ts'
import { newToken } from '../../../src/tokens/format.ts'
import { call } from '../../support/wire.ts'

/** Credentials that must be refused. */
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

/** Finds the operations that answer anything but 401 to invalid credentials. */
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

/** The traces of a token: each half of its secret, and the token in hex and in base64. */
function toTraces(token: string): Buffer[] {
  const secret = token.slice(prefixLength)
  const middle = secret.length / 2
  const halves = [secret.slice(0, middle), secret.slice(middle)]
  const bytes = Buffer.from(token)
  return [...halves, bytes.toString('hex'), bytes.toString('base64')].map((text) =>
    Buffer.from(text),
  )
}

/** Finds the texts, by name, that contain a token or a half of it. */
export function findSecret(
  token: string,
  texts: Readonly<Record<string, string | Buffer>>,
): string[] {
  const traces = toTraces(token)
  return Object.entries(texts)
    .filter(([, content]) => {
      const bytes = Buffer.from(content)
      return traces.some((trace) => bytes.includes(trace))
    })
    .map(([name]) => name)
}
