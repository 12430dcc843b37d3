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
import { type ApiParameter, type ListedOperation, listExamples, toCode } from './sections.ts'

/** Builds the fields of an operation. `answers` are the media types between which it chooses. */
function buildInputs(operation: ListedOperation, answers: readonly string[]) {
  const parameters = operation.parameters.map(buildInput)
  const required = parameters.filter(({ isRequired }) => isRequired)
  const optional = parameters.filter(({ isRequired }) => !isRequired)
  const [[type, text] = []] = listExamples(operation.requestBody?.content)
  const types = answers.map((type) => [type, type] as const)
  const accept = types.length > 1 ? buildField('Accept', buildChoice(...types)) : undefined
  const area = { class: 'code', rows: 2 }
  const body = text === undefined ? undefined : buildField('Body', element('textarea', area, text))
  const folded = [...optional, accept].flatMap((field) => field?.element ?? [])
  return {
    elements: [
      ...[...required, body].flatMap((field) => field?.element ?? []),
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
      return {
        method: operation.method,
        url: new URL(`.${target}`, location.href).href,
        needsToken: operation.security?.length !== 0,
        /** The header fields without the token. */
        headers: [
          ...(accept === undefined ? [] : [['Accept', accept.control.value] as const]),
          ...(type === undefined ? [] : [['Content-Type', type] as const]),
          ...of('header'),
        ],
        body: body?.control.value,
      }
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

/** Builds the form of an operation: its inputs, a ready example, and the answer as it came. */
export function buildTryIt(operation: ListedOperation, token: () => string): HTMLElement {
  const [success] = Object.values(operation.responses)
  const answers = listExamples(success?.content)
  const inputs = buildInputs(operation, [...answers.keys()])
  const send = element('button', { type: 'submit', class: 'primary' }, 'Try it')
  const stop = buildButton('Stop', () => life.abort(), { hidden: true })
  const problem = element('p', { class: 'refusal', role: 'alert' })
  const answer = element('div', { class: 'answer', 'aria-live': 'polite' })
  const code = element('code')
  // Browsers have no clipboard for pages that came over plain HTTP from another machine.
  const copy = buildButton('Copy', copyExample, { hidden: !('clipboard' in navigator) })
  let life = new AbortController()
  function showExample(): void {
    fill(code, toCurl(inputs.read()))
  }

  async function run(): Promise<void> {
    const { url, method, body = null, needsToken, ...typed } = inputs.read()
    // All that can be sent at all is sent as typed, to show its refusal.
    const [odd] = typed.headers.find(([, value]) => !/^[\t -~\u0080-\u00ff]*$/.test(value)) ?? []
    const fault = odd && `The header ${odd} cannot carry these characters.`
    const refused = fault ?? (needsToken ? findTokenFault(token()) : undefined)
    fill(problem, refused)
    if (refused !== undefined) return
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
    buildButtons(send, stop, copy),
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

/** How to send a request from a shell. The token is in the variable TOKEN. */
export function toCurl({ method, url, needsToken, headers, body }: TypedRequest): string {
  const flag = { GET: '', POST: '' }[method]
  const fields = headers.map(([name, value]) => toShellWord(`${name}: ${value}`))
  return [
    `curl${flag ?? ` -X ${method}`} ${toShellWord(url)}`,
    ...(needsToken ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...fields.map((field) => `-H ${field}`),
    ...(body === undefined ? [] : [`--data-raw ${toShellWord(body)}`]),
  ].join(' \\\n  ')
}

function toShellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
