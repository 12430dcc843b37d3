import { element, fill } from '../dom/element.ts'
import { buildChoice } from '../dom/field.ts'
import { buildButton, buildButtons, buildForm, whileBusy } from '../dom/form.ts'
import { findTokenFault } from '../page/token.ts'
import { showAnswer } from './answer.ts'
import { type ApiResponse, type ListedOperation, listExamples, type Resolve } from './document.ts'
import { examples, type TypedRequest } from './examples.ts'
import { buildInputs } from './inputs.ts'
import { toCode } from './rich-text.ts'

/** Builds the form of an operation: its inputs, ready examples, and the answer as it came. */
export function buildTryIt(
  operation: ListedOperation,
  resolve: Resolve,
  token: () => string,
): HTMLElement {
  const [success] = Object.values(operation.responses).map((one) => resolve<ApiResponse>(one))
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
  const needsToken = operation.security?.length !== 0

  function read(): TypedRequest {
    const typed = inputs.read()
    const url = new URL(`.${typed.path}`, location.href).href
    const { operationId, method } = operation
    return { ...typed, operationId, method, url, needsToken }
  }

  function showExample(): void {
    fill(code, examples[kind.value]?.(read()))
  }

  async function run(): Promise<void> {
    const request = read()
    const fault = inputs.findFault() ?? (needsToken ? findTokenFault(token()) : undefined)
    fill(problem, fault)
    if (fault !== undefined) return
    fill(answer)
    life = new AbortController()
    stop.hidden = false
    try {
      const headers = new Headers(request.headers.map(([name, value]) => [name, value]))
      if (needsToken) headers.set('Authorization', `Bearer ${token()}`)
      const { method, body = null } = request
      await showAnswer(answer, request.url, { method, headers, body, signal: life.signal })
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
