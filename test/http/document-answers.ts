import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { operations } from '../../src/contract/operations.ts'
import type { Answer } from '../support/wire.ts'

interface Reference {
  readonly $ref: string
  readonly description?: string
}
interface DocumentedResponse {
  readonly headers: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, { examples?: Record<string, unknown> }>>
}
interface DocumentedOperation {
  readonly operationId: string
  readonly responses: Readonly<Record<string, DocumentedResponse | Reference>>
}
interface Document {
  readonly paths: Readonly<Record<string, Record<string, DocumentedOperation>>>
  readonly components: {
    readonly responses: Readonly<Record<string, DocumentedResponse>>
  }
}

const document: Document = JSON.parse(
  readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
)

for (const { method, path } of Object.values(operations)) {
  const listed = document.paths[path]?.[method.toLowerCase()]
  assert.ok(listed, 'openapi.json is out of date: run npm run fix')
}

/** The header fields of HTTP itself: the document says that it does not list them. */
const unlisted = [
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
]

/** The names of the headers that the document declares for any answer. */
export const declaredHeaders: readonly string[] = [
  ...new Set(
    Object.values(document.paths)
      .flatMap(Object.values<DocumentedOperation>)
      .flatMap(({ responses }) => Object.values(responses).map(resolveResponse))
      .flatMap(({ headers }) => Object.keys(headers)),
  ),
]

/** Every answer that the document lists: a status or, where it has any, an error number of it. */
export function listAnswers(): { operationId: string; answers: string[] }[] {
  return Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId, responses }) => {
      const answers = Object.entries(responses).flatMap(([status, response]) => {
        const numbers = resolveResponse(response).content?.['application/json']?.examples
        if (numbers === undefined) return [status]
        // A reference says which numbers of its status the operation has, unless it has all.
        const own = '$ref' in response ? response.description?.match(/\d{5}/g) : undefined
        return own ?? Object.keys(numbers)
      })
      return { operationId, answers }
    }),
  )
}

/**
 * The operation that the document has for a request, by the first line of what was sent. For HEAD it
 * is that of GET.
 */
export function findOperation(sent: string): DocumentedOperation | undefined {
  const [, method = '', target = ''] = /^(\S+) (\S+) HTTP/.exec(sent) ?? []
  const path = decode(target.replace(/^https?:\/\/[^/]*/, '').replace(/[?#].*$/, ''))
  const known = Object.keys(document.paths).find((template) =>
    new RegExp(`^${template.replace('.', '\\.').replace(/\{\w+\}/, '[^/]+')}$`).test(path),
  )
  const listed = method === 'HEAD' ? 'get' : method.toLowerCase()
  return known === undefined ? undefined : document.paths[known]?.[listed]
}

/** The headers of an answer that the document does not declare. Prism finds those that lack. */
export function findUndeclared(
  operation: DocumentedOperation | undefined,
  { status, headers }: Pick<Answer, 'status' | 'headers'>,
): string[] {
  const response = operation?.responses[status]
  const declared = response === undefined ? undeclared : resolveResponse(response).headers
  const names = Object.keys(declared).map((name) => name.toLowerCase())
  return [...headers.keys()].filter((name) => !unlisted.includes(name) && !names.includes(name))
}

/**
 * The headers of answers outside of the document: of OPTIONS and web pages, for unknown paths and
 * unsupported methods.
 */
const undeclared: DocumentedResponse['headers'] = {
  ...document.components.responses.UriTooLong?.headers,
  'WWW-Authenticate': {},
  Allow: {},
  ETag: {},
  'Cache-Control': {},
  'Content-Encoding': {},
  'Content-Security-Policy': {},
  'Cross-Origin-Opener-Policy': {},
  'Referrer-Policy': {},
  'Access-Control-Allow-Methods': {},
  'Access-Control-Allow-Headers': {},
  'Access-Control-Max-Age': {},
  'Retry-After': {},
}

function resolveResponse(response: DocumentedResponse | Reference): DocumentedResponse {
  if (!('$ref' in response)) return response
  return document.components.responses[toName(response)] as DocumentedResponse
}

function toName({ $ref }: Reference): string {
  return $ref.replace(/^.*\//, '')
}

function decode(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
