import { createRequire } from 'node:module'
import type {
  IHttpRequest,
  IHttpResponse,
  getHttpOperationsFromSpec as ReadOperations,
} from '@stoplight/prism-http'
import { buildOpenApi } from '../../src/contract/openapi.ts'
import type { Answer } from '../support/wire.ts'
import { findOperation } from './document-answers.ts'

// Prism judges all of an answer by an OpenAPI 3.1 document: status, headers, media type and body.
// Others judge the body alone (openapi-response-validator, express-openapi-validator), or ignore a
// status that the document does not list (openapi-backend). Its validators need no port, unlike
// its proxy. It does not export them by name, so the types below say what is used of them. The
// whole package would take three times as long to load, most of it for the answers that it invents.
const load = createRequire(import.meta.url)
type Complaint = { message: string; path?: string[] }
type Operations = Awaited<ReturnType<typeof ReadOperations>>
type Outcome<Value> = { _tag: 'Left'; left: Complaint[] } | { _tag: 'Right'; right: Value }
type Check<Element> = (given: {
  resource: Operations[number]
  element: Element
}) => Outcome<unknown>
const { getHttpOperationsFromSpec } = load('@stoplight/prism-http/dist/utils/operations') as {
  getHttpOperationsFromSpec: typeof ReadOperations
}
const { validateInput, validateOutput } = load('@stoplight/prism-http/dist/validator') as {
  validateInput: Check<IHttpRequest>
  validateOutput: Check<IHttpResponse>
}

/** Prism's judgement of one request and its answer. */
export interface Verdict {
  /** The operation that the document has for the request, if it has one. */
  readonly operationId: string | undefined
  /** The faults of the answer and, where the request was accepted, those of the request. */
  readonly complaints: readonly string[]
}

/** Judges a request, as it was sent, and its answer. */
export type Judge = (sent: string, answer: Answer) => Verdict

/** Builds the check of traffic against the document of the service. */
export async function buildDocumentCheck(): Promise<Judge> {
  // Parsed from its text, as any other reader has it.
  const document = JSON.parse(JSON.stringify(buildOpenApi({ baseUrl: 'http://plants.test' })))
  const resources = await getHttpOperationsFromSpec(document)
  const resourceOf = new Map(resources.map((resource) => [resource.iid, resource]))
  const verdicts = new Map<string, Verdict>()
  return (sent, answer) => {
    const key = toKey(sent, answer)
    const verdict = verdicts.get(key) ?? judge(sent, answer)
    verdicts.set(key, verdict)
    return verdict
  }

  function judge(sent: string, answer: Answer): Verdict {
    const operationId = findOperation(sent)?.operationId
    const resource = resourceOf.get(operationId)
    if (resource === undefined) return { operationId: undefined, complaints: [] }
    const request = toRequest(sent)
    const output = validateOutput({ resource, element: toResponse(answer, request.method) })
    // HEAD is judged as GET, by everything but the body.
    const faults = complaintsOf(output).filter(
      (text) => request.method !== 'head' || !/^body: |media type/.test(text),
    )
    const isAccepted = answer.status < 300
    const input = isAccepted ? complaintsOf(validateInput({ resource, element: request })) : []
    return { operationId, complaints: [...faults, ...input] }
  }
}

/** What a verdict depends on: the engines answer most requests alike, and Prism is slow. */
function toKey(sent: string, { status, headers, body }: Answer): string {
  const fields = [...headers].map(([name, value]) => (isUnique.test(name) ? name : [name, value]))
  return JSON.stringify([sent.replace(/(?<=Bearer )\S+/, ''), status, fields, body])
}

/** Headers whose value differs from answer to answer. */
const isUnique = /^(x-request-id|date|etag)$/

/** Prism takes an int64 for a JavaScript number, and so for a smaller range. */
const boundOfNumbers = /must be [<>]= -?9007199254740991$/

function complaintsOf(outcome: Outcome<unknown>): string[] {
  if (outcome._tag === 'Right') return []
  return outcome.left
    .filter(({ message }) => !boundOfNumbers.test(message))
    .map(({ message, path = [] }) => `${path.join('.')}: ${message}`)
}

/** A request as it was sent, in the form that Prism takes. */
function toRequest(sent: string): IHttpRequest {
  const [head = '', ...rest] = sent.split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const [method = '', target = ''] = line.split(' ')
  const path = target.replace(/^https?:\/\/[^/]*/, '')
  const [pathname = '', query = ''] = path.split(/\?(.*)/)
  const headers = toRecord(lines.map((field) => field.split(/: ?(.*)/) as [string, string]))
  const text = headers['transfer-encoding'] ? dechunk(rest.join('\r\n\r\n')) : rest.join('\r\n\r\n')
  const isJson = headers['content-type']?.trim().toLowerCase().startsWith('application/json')
  const decoded = Buffer.from(text, 'latin1').toString()
  return {
    method: method.toLowerCase() as IHttpRequest['method'],
    url: {
      path: pathname.replaceAll('%70', 'p'),
      query: toRecord([...new URLSearchParams(query)]),
    },
    headers,
    ...(text !== '' && { body: isJson ? toValue(decoded) : decoded }),
  }
}

function dechunk(text: string): string {
  return text.replaceAll(/[0-9a-f]+\r\n([^\r]*)\r\n/gi, '$1').trim()
}

function toRecord(pairs: [name: string, value: string][]): Record<string, string> {
  return Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
}

function toResponse({ status, headers, body }: Answer, method: string): IHttpResponse {
  const isJson = headers.get('content-type')?.startsWith('application/json')
  // An answer to HEAD has the media type of a body, and Prism would look for the body.
  const isHead = method === 'head'
  const kept = [...headers].filter(([name]) => !isHead || name !== 'content-type')
  const hasBody = !isHead && headers.has('content-type')
  return {
    statusCode: status,
    headers: Object.fromEntries(kept),
    ...(hasBody && { body: isJson ? toValue(body) : body }),
  }
}

function toValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
