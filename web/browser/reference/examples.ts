/** A request as somebody typed it. */
export interface TypedRequest {
  readonly operationId: string
  readonly method: string
  readonly url: string
  readonly needsToken: boolean
  /** The header fields without the token. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | undefined
  /** The values of the parameters that are sent, by name. */
  readonly values: Readonly<Record<string, string>>
}

/** How to send a request from a shell or a program. The token is in the variable TOKEN. */
export const examples: Readonly<Record<string, (request: TypedRequest) => string>> = {
  curl: toCurl,
  Client: toClient,
}

function toCurl({ method, url, needsToken, headers, body }: TypedRequest): string {
  const flag = { GET: '', POST: '' }[method]
  const fields = headers.map(([name, value]) => toShellWord(`${name}: ${value}`))
  return [
    `curl${flag ?? ` -X ${method}`} ${toShellWord(url)}`,
    ...(needsToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...fields.map((field) => `-H ${field}`),
    ...(body === undefined ? [] : [`--data-binary ${toShellWord(body)}`]),
  ].join(' \\\n  ')
}

/** The calls of the client, by operation. */
const calls: Readonly<Record<string, (request: TypedRequest) => string>> = {
  createPlant: ({ body, values }) =>
    `console.log(await plants.create(${toLiteral(body)}${toOptions({ idempotencyKey: values['Idempotency-Key'] })}))`,
  getPlant: ({ values }) => `console.log(await plants.get(${values.id}n))`,
  replacePlant: ({ body, values }) =>
    `console.log(await plants.replace(${values.id}n, ${toLiteral(body)}${toOptions({ ifMatch: values['If-Match'], ifNoneMatch: values['If-None-Match'] })}))`,
  deletePlant: ({ values }) =>
    `console.log(await plants.delete(${values.id}n${toOptions({ ifMatch: values['If-Match'] })}))`,
  listPlants: ({ values }) =>
    `for await (const plant of plants.list({${toMembers({ tag: values.tag, name: values.name, order: values.order })}${values.after ? ` after: ${values.after}n,` : ''}${values.limit ? ` pageSize: ${values.limit},` : ''} })) {\n  console.log(plant)\n}`,
  listEvents: ({ values }) =>
    `for await (const event of plants.events({${toMembers({ after: values.after })} })) {\n  console.log(event)\n}`,
}

function toClient(request: TypedRequest): string {
  const call = calls[request.operationId]
  if (call === undefined) return 'The client has no call for this. Use curl, or fetch.'
  const text = call(request)
  const { 'If-Match': ifMatch, 'If-None-Match': ifNoneMatch } = request.values
  const lost = Object.entries({ ifMatch, ifNoneMatch }).find(
    ([name, value]) => !text.includes(toMembers({ [name]: value })),
  )
  // A copy of the call without its condition would do more than the request.
  if (lost !== undefined) return `The client has no ${lost[0]} here. Use curl, or fetch.`
  const base = new URL('.', request.url).href.replace(/\/(?:plants\/)?$/, '')
  return `import { PlantStore } from 'plant-store/client'

const plants = new PlantStore({ url: ${toScriptText(base)}, token: process.env.TOKEN })
${text}`
}

function toOptions(members: Readonly<Record<string, string | undefined>>): string {
  const text = toMembers(members)
  return text === '' ? '' : `, {${text} }`
}

function toMembers(members: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}: ${toScriptText(value as string)},`)
    .join('')
}

/** A plant in JSON as a literal of JavaScript: its id becomes a bigint with the same digits. */
function toLiteral(body: string | undefined): string {
  return (body ?? '{}').trim().replace(/("id"\s*:\s*)(-?\d+)(?=\s*[,}])/, '$1$2n')
}

function toShellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function toScriptText(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}
