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
    ...(body === undefined ? [] : [`--data-raw ${toShellWord(body)}`]),
  ].join(' \\\n  ')
}

/** The calls of the client, by operation. */
const calls: Readonly<Record<string, (request: TypedRequest) => string>> = {
  createPlant: ({ body, values }) => {
    const options = toOptions({ idempotencyKey: values['Idempotency-Key'] })
    return `console.log(await plants.create(${toLiteral(body)}${options}))`
  },
  getPlant: ({ values }) => `console.log(await plants.get(${values.id}n))`,
  replacePlant: ({ body, values }) => {
    const { id, 'If-Match': ifMatch, 'If-None-Match': ifNoneMatch } = values
    const options = toOptions({ ifMatch, ifNoneMatch })
    return `console.log(await plants.replace(${id}n, ${toLiteral(body)}${options}))`
  },
  deletePlant: ({ values }) => {
    const options = toOptions({ ifMatch: values['If-Match'] })
    return `console.log(await plants.delete(${values.id}n${options}))`
  },
  listPlants: ({ values: { tag, name, order, after, limit } }) => {
    const start = after ? ` after: ${after}n,` : ''
    const size = limit ? ` pageSize: ${limit},` : ''
    const options = `${toMembers({ tag, name, order })}${start}${size}`
    return `for await (const plant of plants.list({${options} })) {\n  console.log(plant)\n}`
  },
  listEvents: ({ values: { after, 'Last-Event-ID': last = after } }) => {
    const options = toMembers({ after: last })
    return `for await (const event of plants.events({${options} })) {\n  console.log(event)\n}`
  },
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
  const base = new URL('id' in request.values ? '..' : '.', request.url).href.replace(/\/$/, '')
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
    .map(([name, value]) => (value === undefined ? '' : ` ${name}: ${toScriptText(value)},`))
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
