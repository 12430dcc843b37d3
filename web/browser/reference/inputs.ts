import { element } from '../dom/element.ts'
import { buildChoice, buildField } from '../dom/field.ts'
import type { ApiParameter, ListedOperation } from './document.ts'

/** What somebody typed into the form of an operation. */
export interface Typed {
  /** The path with its query. */
  readonly path: string
  /** The header fields without the token. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | undefined
  /** The values of the parameters that are sent, by name. */
  readonly values: Readonly<Record<string, string>>
}

export function buildInputs(
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
  const body = bodies.size === 0 ? undefined : buildField('Body', buildBody(bodies))
  type?.control.addEventListener('change', () => {
    if (body !== undefined) body.control.value = bodies.get(type.control.value) ?? ''
  })

  return {
    elements: [
      ...required.map((parameter) => parameter.element),
      ...[type, body].flatMap((field) => field?.element ?? []),
      ...buildOptional([...optional, ...(accept === undefined ? [] : [accept])]),
    ],
    read(): Typed {
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
      const contentType = type?.control.value ?? types[0]
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
  const input = element('input', {
    autocomplete: 'off',
    spellcheck: 'false',
    value: required ? String(example ?? '') : '',
  })
  return {
    name,
    in: place,
    isRequired: required,
    element: buildField(`${name} (${place})`, input).element,
    value: () => input.value,
    isSent: () => required || input.value !== '',
  }
}

/** Folds away what most requests do without. */
function buildOptional(fields: readonly { readonly element: HTMLElement }[]): HTMLElement[] {
  if (fields.length === 0) return []
  const summary = element('summary', 'Optional parameters')
  return [element('details', summary, ...fields.map((field) => field.element))]
}

function buildBody(bodies: ReadonlyMap<string, string>): HTMLTextAreaElement {
  const text = [...bodies.values()][0] ?? ''
  const rows = Math.max(2, text.split('\n').length)
  const area = element('textarea', { class: 'code', rows, spellcheck: 'false' })
  area.value = text
  return area
}
