import { createRequire } from 'node:module'
import {
  getHttpOperationsFromSpec,
  type IHttpRequest,
  type IHttpResponse,
} from '@stoplight/prism-http'
import type { Answer } from '../support/wire.ts'

// Prism because it judges all of an answer by an OpenAPI 3.1 document: status, headers, media type and body. The others
// that we looked at judge the body alone (openapi-response-validator, express-openapi-validator), or pass over a
// status that the document does not know (openapi-backend). Its parts, and not its proxy: they need no port.
// What is not exported by name is typed here as far as it is used.
const load = createRequire(import.meta.url)
type Complaint = { message: string; path?: string[] }
type Operations = Awaited<ReturnType<typeof getHttpOperationsFromSpec>>
type Outcome<Value> = { _tag: 'Left'; left: Complaint[] } | { _tag: 'Right'; right: Value }
type Check<Element> = (given: {
  resource: Operations[number]
  element: Element
}) => Outcome<unknown>
const { validateInput, validateOutput } = load('@stoplight/prism-http/dist/validator') as {
  validateInput: Check<IHttpRequest>
  validateOutput: Check<IHttpResponse>
}
const { default: route } = load('@stoplight/prism-http/dist/router') as {
  default: (given: { resources: Operations; input: IHttpRequest }) => Outcome<Operations[number]>
}

/** What Prism says about one request and its answer. */
export interface Verdict {
  /** The operation that the document has for the request, if it has one. */
  readonly operationId: string | undefined
  /** What is wrong with the answer, and with the request where it was accepted all the same. */
  readonly complaints: readonly string[]
}

/** Builds the check of traffic against a document. */
export async function buildDocumentCheck(document: object) {
  const resources = await getHttpOperationsFromSpec(document)
  return (sent: string, answer: Answer): Verdict => {
    const request = toRequest(sent)
    const found = route({ resources, input: request })
    if (found._tag === 'Left') return { operationId: undefined, complaints: [] }
    const resource = found.right
    const output = validateOutput({ resource, element: toResponse(answer, request.method) })
    const isAccepted = answer.status < 300
    const input = isAccepted ? complaintsOf(validateInput({ resource, element: request })) : []
    return { operationId: resource.iid ?? '', complaints: [...complaintsOf(output), ...input] }
  }
}

/** Prism takes an int64 for a JavaScript number, which ours are not. */
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
  return {
    method: method.toLowerCase() as IHttpRequest['method'],
    url: {
      path: pathname.replaceAll('%70', 'p'),
      query: toRecord([...new URLSearchParams(query)]),
    },
    headers,
    ...(text !== '' && { body: toValue(Buffer.from(text, 'latin1').toString()) }),
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
  // An answer to HEAD has the headers of a body, and none: Prism would look for it.
  const isHead = method === 'head'
  const kept = [...headers].filter(([name]) => !isHead || !name.startsWith('content-'))
  return {
    statusCode: status,
    headers: Object.fromEntries(kept),
    ...(body !== '' && { body: isJson ? toValue(body) : body }),
  }
}

function toValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
