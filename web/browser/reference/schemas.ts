import { element } from '../dom.ts'
import type { ApiDocument, ApiSchema, Reference } from './document.ts'

/** Text whose only mark is backticks around code. */
export function toInline(text: string): (Node | string)[] {
  return text
    .split(/`([^`]+)`/)
    .map((part, index) => (index % 2 === 1 ? element('code', part) : part))
}

/** Paragraphs, and lists whose items start with a dash. */
export function toBlocks(text: string): HTMLElement[] {
  return text.split('\n\n').map((block) => {
    if (!block.startsWith('- ')) return element('p', ...toInline(block))
    const items = block.slice(2).split('\n- ')
    return element('ul', ...items.map((item) => element('li', ...toInline(item))))
  })
}

/** Code in a block of its own, which the keyboard can scroll. */
export function toCode(label: string, code: string | Node): HTMLElement {
  const content = typeof code === 'string' ? element('code', code) : code
  return element('pre', { tabindex: 0, 'aria-label': label }, content)
}

/** The sections of the shapes and of the headers, to which the operations link. */
export function buildShapes({ components: { schemas } }: ApiDocument): HTMLElement[] {
  return Object.entries(schemas).map(([name, schema]) => {
    const { description = '', items, properties = {}, required = [] } = schema
    const members = Object.entries(properties).flatMap(([member, shape]) => {
      const note = required.includes(member) ? 'required' : 'optional'
      if (!('$ref' in shape)) return toEntry(member, note, shape.description ?? '', shape)
      return [toTerm(member, note), element('dd', ...linkToSchema(shape))]
    })
    return element(
      'section',
      { id: `shape-${name}` },
      element('h3', element('a', { href: `#shape-${name}`, class: 'anchor' }, name)),
      element('p', ...toInline(description)),
      element('p', { class: 'note' }, describeSchema(schema)),
      items && element('p', 'Each is ', ...linkToSchema(items)),
      element('dl', ...members),
    )
  })
}

export function buildHeaders({ components: { headers } }: ApiDocument): HTMLElement {
  const known = Object.entries(headers).map(([name, header]) => {
    return [name.replace(/-(Optional|Required)$/, ''), header] as const
  })
  return element(
    'dl',
    ...[...new Map(known)].flatMap(([name, { description, schema, example }]) => [
      element('dt', { id: `header-${name}` }, element('code', name)),
      element(
        'dd',
        ...toInline(description),
        ' ',
        element('span', { class: 'note' }, describeSchema(schema), ' Such as '),
        element('code', String(example)),
      ),
    ]),
  )
}

/** An entry of a list of parameters or members: its name with a note, and what it is. */
export function toEntry(name: string, note: string, description: string, schema: ApiSchema) {
  const words = element('span', { class: 'note' }, describeSchema(schema))
  return [toTerm(name, note), element('dd', ...toInline(description), ' ', words)]
}

function toTerm(name: string, note: string): HTMLElement {
  return element('dt', element('code', name), element('span', { class: 'note' }, ` ${note}`))
}

/** The name of a shape as a link, or what a text is. */
export function linkToSchema(schema: ApiSchema | Reference): (Node | string)[] {
  if (!('$ref' in schema)) return toInline(schema.description ?? schema.type ?? '')
  const name = schema.$ref.replace(/^.*\//, '')
  return [element('a', { href: `#shape-${name}` }, name)]
}

/** A schema in a few words. Its pattern, if any, is in openapi.json. */
export function describeSchema(schema: ApiSchema): string {
  const { type = '', format, minimum, maximum, minLength, maxLength, maxItems } = schema
  const { enum: values = schema.const === undefined ? [] : [schema.const] } = schema
  const parts = [
    format === undefined ? type : `${type} (${format})`,
    ...(minimum === undefined ? [] : [`${minimum} to ${maximum}`]),
    ...(maxLength === undefined ? [] : [`${minLength ?? 0} to ${maxLength} characters`]),
    ...(maxItems === undefined ? [] : [`at most ${maxItems}`]),
    ...(values.length === 1 ? [`always ${values}`] : []),
    ...(values.length > 1 ? [`one of ${values.join(', ')}`] : []),
    ...(schema.default === undefined ? [] : [`${schema.default} unless given`]),
  ]
  const words = parts.filter((part) => part !== '').join(', ')
  return words === '' ? '' : `${words}.`
}
