import {
  buildButton,
  buildButtons,
  buildChoice,
  buildField,
  buildForm,
  element,
  fill,
  whileBusy,
} from '../dom.ts'
import { findTokenFault } from '../page/token.ts'
import {
  type ApiParameter,
  type ListedOperation,
  listExamples,
  type Resolve,
  toCode,
} from './sections.ts'

function buildInputs(
  operation: ListedOperation,
  bodies: ReadonlyMap<string, string>,
  answers: readonly string[],
) {
  const parameters = operation.parameters.map(buildInput)
  const required = parameters.filter(({ isRequired }) => isRequired)
  const optional = parameters.filter(({ isRequired }) => !isRequired)
  const types = [...bodies.keys()]
  const accept = answers.length > 1 ? buildField('Accept', buildChoice(...answers)) : undefined
  const type = types.length > 1 ? buildField('Content-Type', buildChoice(...types)) : undefined
  const area = { class: 'code', rows: 2 }
  const [text] = bodies.values()
  const body = text === undefined ? undefined : buildField('Body', element('textarea', area, text))
  type?.control.addEventListener('change', () => {
    if (body !== undefined) body.control.value = bodies.get(type.control.value) ?? ''
  })

  const folded = [...optional, accept].flatMap((field) => field?.element ?? [])
  return {
    elements: [
      ...[...required, type, body].flatMap((field) => field?.element ?? []),
      ...(folded.length === 0
        ? []
        : [element('details', element('summary', 'Optional parameters'), ...folded)]),
    ],
    read() {
      const sent = parameters.filter((parameter) => parameter.isSent())
      const of = (place: ApiParameter['in']) =>
        sent
          .filter((parameter) => parameter.in === place)
          .map(({ name, value }) => [name, value()] as const)
      const path = of('path').reduce(
        (text, [name, value]) => text.replace(`{${name}}`, encode(value)),
        operation.path,
      )
      const query = of('query').map(([name, value]) => `${name}=${encode(value)}`)
      const target = query.length === 0 ? path : `${path}?${query.join('&')}`
      const contentType = type?.control.value ?? types[0]
      return {
        operationId: operation.operationId,
        method: operation.method,
        url: new URL(`.${target}`, location.href).href,
        needsToken: operation.security?.length !== 0,
        /** The header fields without the token. */
        headers: [
          ...(accept === undefined ? [] : [['Accept', accept.control.value] as const]),
          ...(contentType === undefined ? [] : [['Content-Type', contentType] as const]),
          ...of('header'),
        ],
        body: body?.control.value,
        /** The values of the parameters that are sent, by name. */
        values: Object.fromEntries(sent.map(({ name, value }) => [name, value()])),
      }
    },
    /** What cannot be sent at all. Everything else is sent as typed, to show its refusal. */
    findFault(): string | undefined {
      for (const { name, value, in: place, isSent } of parameters) {
        if (place === 'path' && value() === '') return `Enter a value for ${name}.`
        if (place === 'header' && isSent() && !/^[\t -~\u0080-\u00ff]*$/.test(value())) {
          return `The header ${name} cannot carry these characters.`
        }
      }
      return undefined
    },
  }
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

function buildInput({ name, in: place, required = false, example }: ApiParameter) {
  const input = element('input', { value: required ? String(example ?? '') : '' })
  return {
    name,
    in: place,
    isRequired: required,
    element: buildField(`${name} (${place})`, input).element,
    value: () => input.value,
    isSent: () => required || input.value !== '',
  }
}

/** Builds the form of an operation: its inputs, ready examples, and the answer as it came. */
export function buildTryIt(
  operation: ListedOperation,
  resolve: Resolve,
  token: () => string,
): HTMLElement {
  const [success] = Object.values(operation.responses).map((one) => resolve(one))
  const answers = listExamples(success?.content)
  const bodies = listExamples(operation.requestBody?.content)
  const inputs = buildInputs(operation, bodies, [...answers.keys()])
  const send = element('button', { type: 'submit', class: 'primary' }, 'Try it')
  const stop = buildButton('Stop', () => life.abort(), { hidden: true })
  const problem = element('p', { class: 'refusal', role: 'alert' })
  const answer = element('div', { class: 'answer', 'aria-live': 'polite' })
  const code = element('code')
  const kind = buildChoice(...Object.keys(examples))
  kind.ariaLabel = 'Example'
  // Browsers have no clipboard for pages that came over plain HTTP from another machine.
  const copy = buildButton('Copy', copyExample, { hidden: !('clipboard' in navigator) })
  let life = new AbortController()
  function showExample(): void {
    fill(code, examples[kind.value]?.(inputs.read()))
  }

  async function run(): Promise<void> {
    const { url, method, body = null, needsToken, ...typed } = inputs.read()
    const fault = inputs.findFault() ?? (needsToken ? findTokenFault(token()) : undefined)
    fill(problem, fault)
    if (fault !== undefined) return
    fill(answer)
    life = new AbortController()
    stop.hidden = false
    try {
      const headers = new Headers(typed.headers.map(([name, value]) => [name, value]))
      if (needsToken) headers.set('Authorization', `Bearer ${token()}`)
      await showAnswer(answer, url, { method, headers, body, signal: life.signal })
    } finally {
      stop.hidden = true
    }
  }

  async function copyExample(): Promise<void> {
    await navigator.clipboard.writeText(code.textContent ?? '')
    fill(copy, 'Copied')
    setTimeout(() => fill(copy, 'Copy'), 2_000)
  }

  const form = buildForm(
    () => whileBusy(send, run),
    { class: 'try', input: showExample, change: showExample },
    ...inputs.elements,
    buildButtons(send, stop, kind, copy),
    problem,
    toCode('Example', code),
    answer,
  )
  const [sample] = answers.values()
  if (sample !== undefined) fill(answer, ...buildSample('Sample answer', sample))
  showExample()
  return form
}

/** An example of a body, with a title. */
export function buildSample(title: string, text: string): HTMLElement[] {
  return [element('p', { class: 'note' }, title), toCode(title, text)]
}

/** A longer body is cut. */
const maxShownCharacters = 1024 * 1024

/** Sends a request and shows its answer as it comes: status, headers and body, every digit. */
async function showAnswer(
  target: HTMLElement,
  url: string,
  init: RequestInit & { readonly signal: AbortSignal },
): Promise<void> {
  const startedAt = performance.now()
  const code = element('code')
  const note = element('p', { class: 'note' })
  let reason = 'The service does not answer.'
  try {
    // Not through the client, which would hide what is on the wire.
    const response = await fetch(url, { ...init, cache: 'no-store', redirect: 'manual' })
    reason = 'The connection was lost.'
    const tookMs = Math.round(performance.now() - startedAt)
    const status = `${response.status} ${response.statusText}`
    const took = element('span', { class: 'note' }, ` ${tookMs} ms`)
    const fields = [...response.headers].map((field) => field.join(': ')).join('\n')
    fill(
      target,
      element('p', { class: 'status', 'data-ok': response.ok }, status, took),
      toCode('Headers of the answer', fields),
      toCode('Body of the answer', code),
      note,
    )
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let shown = 0
    for (;;) {
      const { value } = (await reader?.read()) ?? {}
      if (value === undefined) return
      code.append(value)
      shown += value.length
      if (shown > maxShownCharacters) {
        fill(note, 'The rest is not shown.')
        return reader?.cancel()
      }
    }
  } catch {
    target.append(element('p', { class: 'refusal' }, init.signal.aborted ? 'Stopped.' : reason))
  }
}

/** A request as somebody typed it. */
type TypedRequest = ReturnType<ReturnType<typeof buildInputs>['read']>

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
