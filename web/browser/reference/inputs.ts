import { element } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import type { ApiParameter, ListedOperation } from './document.ts'

/** What somebody typed into the form of an operation. */
export interface Typed {
  /** The path with its query. */
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | undefined
  readonly values: Readonly<Record<string, string>>
}

export interface Inputs {
  readonly elements: readonly HTMLElement[]
  read(): Typed
  /** What cannot even be sent. All else is sent as typed, so that one sees what is refused. */
  findFault(): string | undefined
}

export function buildInputs(
  operation: ListedOperation,
  bodies: ReadonlyMap<string, string>,
  answers: readonly string[],
): Inputs {
  const parameters = (operation.parameters ?? []).map(buildInput)
  const accept = answers.length > 1 ? buildChoice('Accept', answers) : undefined
  const type = bodies.size > 1 ? buildChoice('Content-Type', [...bodies.keys()]) : undefined
  const body = bodies.size === 0 ? undefined : buildField('Body', buildBody(bodies))
  type?.control.addEventListener('change', () => {
    if (body !== undefined) body.control.value = bodies.get(type.control.value) ?? ''
  })
  const mediaType = () => type?.control.value ?? [...bodies.keys()][0]

  return {
    elements: [
      ...parameters.map((parameter) => parameter.element),
      ...[accept, type, body].flatMap((field) => (field === undefined ? [] : [field.element])),
    ],
    read() {
      const sent = parameters.filter((parameter) => parameter.isSent())
      const of = (place: ApiParameter['in']) =>
        sent
          .filter((parameter) => parameter.in === place)
          .map(({ name, value }) => [name, value()] as const)
      const path = of('path').reduce(
        (text, [name, value]) =>
          text.replace(`{${name}}`, encodeURIComponent(value.toWellFormed())),
        operation.path,
      )
      const query = of('query').map(
        ([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`,
      )
      const contentType = mediaType()
      return {
        path: query.length === 0 ? path : `${path}?${query.join('&')}`,
        headers: [
          ...(accept === undefined ? [] : [['Accept', accept.control.value] as const]),
          ...(contentType === undefined ? [] : [['Content-Type', contentType] as const]),
          ...of('header'),
        ],
        body: body?.control.value,
        values: Object.fromEntries(sent.map(({ name, value }) => [name, value()])),
      }
    },
    findFault() {
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

function buildInput(parameter: ApiParameter) {
  const { name, in: place, required, example } = parameter
  const input = element('input', {
    autocomplete: 'off',
    spellcheck: 'false',
    value: required ? String(example ?? '') : '',
  })
  const empty = element('input', { type: 'checkbox' })
  const note = required
    ? undefined
    : element('label', { class: 'check' }, empty, 'Send it without a value')
  const field = buildField(`${name} (${place})`, input, place === 'query' ? note : undefined)
  return {
    name,
    in: place,
    element: field.element,
    value: () => input.value,
    isSent: () => required === true || input.value !== '' || empty.checked,
  }
}

function buildChoice(label: string, values: readonly string[]) {
  return buildField(
    label,
    element('select', {}, ...values.map((value) => element('option', {}, value))),
  )
}

function buildBody(bodies: ReadonlyMap<string, string>): HTMLTextAreaElement {
  const text = [...bodies.values()][0] ?? ''
  const area = element('textarea', { class: 'code', rows: 4, spellcheck: 'false' })
  area.value = text
  return area
}
