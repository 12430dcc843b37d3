import { element, fill } from './element.ts'

/** A labelled control with a place for what is wrong with its value. */
export interface Field<Control extends HTMLElement = HTMLInputElement | HTMLTextAreaElement> {
  readonly element: HTMLElement
  readonly control: Control
  /** Shows what is wrong, or clears it. */
  refuse(message: string | undefined): void
}

let fields = 0

/** Builds a field around a control. The note explains it, in small print. */
export function buildField<Control extends HTMLElement>(
  label: string,
  control: Control,
  note?: string | Node,
): Field<Control> {
  const id = `field-${++fields}`
  control.id = id
  const alert = element('p', { class: 'refusal', id: `${id}-refusal`, role: 'alert' })
  const described = [`${id}-refusal`, ...(note === undefined ? [] : [`${id}-note`])]
  control.setAttribute('aria-describedby', described.join(' '))
  return {
    element: element(
      'div',
      { class: 'field' },
      element('label', { for: id }, label),
      control,
      note === undefined ? undefined : element('p', { class: 'note', id: `${id}-note` }, note),
      alert,
    ),
    control,
    refuse(message) {
      fill(alert, message)
      if (message === undefined) control.removeAttribute('aria-invalid')
      else control.setAttribute('aria-invalid', 'true')
    },
  }
}

/**
 * A control for a text of any kind, also one with line breaks. It grows with its text. Enter sends
 * the form; Shift and Enter break the line.
 */
export function buildTextControl(maxHeightPx: number): HTMLTextAreaElement {
  const control = element('textarea', {
    rows: 1,
    spellcheck: 'false',
    autocomplete: 'off',
    dir: 'auto',
    keydown: (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
      event.preventDefault()
      control.form?.requestSubmit()
    },
    input: () => growWith(control, maxHeightPx),
  })
  return control
}

/** Measuring a long text takes seconds, so it gets the full height. */
const longText = 2_000

function growWith(control: HTMLTextAreaElement, maxHeightPx: number): void {
  control.style.height = 'auto'
  const isLong = control.value.length > longText
  const heightPx = isLong ? maxHeightPx : Math.min(control.scrollHeight + 2, maxHeightPx)
  control.style.height = `${heightPx}px`
}

/**
 * Puts a text into a control and returns a function that reads it. A browser turns every line break
 * into a line feed; a text that nobody touched is returned as it was.
 */
export function keepText(control: HTMLTextAreaElement, text: string): () => string {
  control.value = text
  const shown = control.value
  control.dispatchEvent(new Event('input'))
  return () => (control.value === shown ? text : control.value)
}
