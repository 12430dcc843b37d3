import { element } from '../dom/element.ts'

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
