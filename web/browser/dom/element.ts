export type Child = Node | string | undefined
type Attribute = string | number | boolean | undefined | ((event: never) => void)
export type Attributes = Readonly<Record<string, Attribute>>

/**
 * Builds an element from attributes and children, which are nodes or text: text is never markup. An
 * attribute with a function is a listener, with `true` it has no value; one that is `undefined` or
 * `false` is left out.
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  ...content: readonly (Attributes | Child)[]
): HTMLElementTagNameMap[Tag] {
  const built = document.createElement(tag)
  for (const part of content) {
    if (typeof part === 'object' && !(part instanceof Node)) setAttributes(built, part)
    else if (part !== undefined) built.append(part)
  }
  return built
}

function setAttributes(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') target.addEventListener(name, value as EventListener)
    else if (value !== undefined && value !== false) {
      target.setAttribute(name, value === true ? '' : String(value))
    }
  }
}

/** Replaces the content of an element. */
export function fill(target: Element, ...children: readonly Child[]): void {
  target.replaceChildren(...children.filter((child) => child !== undefined))
}

const drawings = {
  edit: 'M4 20h4L19 9l-4-4L4 16v4Zm9-13 4 4',
  delete: 'M5 7h14M10 4h4M7 7l1 13h8l1-13M10 11v5m4-5v5',
  leaf: 'M12 21v-9m0 3c-4 0-6-2-6-6 4 0 6 2 6 6Zm0-3c0-3 2-5 6-5 0 3-2 5-6 5Z',
} as const

/** A small drawing beside or instead of a text. Screen readers do not see it. */
export function icon(name: keyof typeof drawings): SVGElement {
  const space = 'http://www.w3.org/2000/svg'
  const drawing = document.createElementNS(space, 'svg')
  const path = document.createElementNS(space, 'path')
  setAttributes(drawing, { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: 'icon' })
  setAttributes(path, { d: drawings[name] })
  drawing.append(path)
  return drawing
}
