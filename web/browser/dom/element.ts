type Child = Node | string | undefined
type Attribute = string | number | boolean | undefined | ((event: never) => void)

/**
 * Builds an element. A function is a listener, `true` an attribute without a value; `undefined`
 * and `false` leave an attribute out. Children are nodes or text, and text is never markup.
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, Attribute>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const built = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') built.addEventListener(name, value as EventListener)
    else if (value !== undefined && value !== false) {
      built.setAttribute(name, value === true ? '' : String(value))
    }
  }
  built.append(...children.filter((child) => child !== undefined))
  return built
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
  drawing.setAttribute('viewBox', '0 0 24 24')
  drawing.setAttribute('aria-hidden', 'true')
  drawing.setAttribute('class', 'icon')
  const path = document.createElementNS(space, 'path')
  path.setAttribute('d', drawings[name])
  drawing.append(path)
  return drawing
}
