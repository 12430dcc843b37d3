import { element } from '../dom/element.ts'

/** Longer names and tags are cut. */
const maxShown = 500

export function shorten(text: string): string {
  return text.length > maxShown ? `${text.slice(0, maxShown).toWellFormed()}…` : text
}

/** A name in running text. An empty one can be seen. */
export function showName(name: string): HTMLElement {
  return element('bdi', shorten(name) || '“” no name')
}

/** A tag in running text: none, an empty one and any other can be told apart. */
export function showTag(tag: string | undefined): HTMLElement {
  return tag === undefined
    ? element('span', { class: 'none' }, 'no tag')
    : element('bdi', { class: 'chip' }, shorten(tag) || '“” empty')
}
