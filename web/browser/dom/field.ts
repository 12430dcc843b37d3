import { element, fill } from './element.ts'

let fields = 0

/**
 * Builds a field: a labelled control with a place for what is wrong with its value. The note
 * explains it, in small print.
 */
export function buildField<Control extends HTMLElement>(
  label: string,
  control: Control,
  note?: string | Node,
) {
  const id = `field-${++fields}`
  control.id = id
  const name = element('label', { for: id }, label)
  const small = note && element('p', { class: 'note', id: `${id}-note` }, note)
  const alert = element('p', { class: 'refusal', id: `${id}-refusal`, role: 'alert' })
  control.setAttribute('aria-describedby', small ? `${alert.id} ${id}-note` : alert.id)
  return {
    element: element('div', { class: 'field' }, name, control, small, alert),
    control,
    /** Shows what is wrong, or clears it. */
    refuse(message: string | undefined): void {
      fill(alert, message)
      control.ariaInvalid = message === undefined ? null : 'true'
    },
  }
}

/** A choice between values, some with a label. The first is chosen. */
export function buildChoice(
  ...values: readonly (string | readonly [value: string, label: string])[]
): HTMLSelectElement {
  const options = values.map((one) => {
    const [value, label] = typeof one === 'string' ? [one, one] : one
    return element('option', { value }, label)
  })
  return element('select', ...options)
}

/**
 * A field for a text of any kind. It grows with its text. Enter sends the form; Shift and Enter
 * break the line. A browser turns every line break into a line feed, so a text that nobody touched
 * is read as it was given.
 */
export function buildTextField(label: string, text: string, note?: Node) {
  const control = element('textarea', {
    rows: 1,
    spellcheck: 'false',
    autocomplete: 'off',
    dir: 'auto',
    keydown: (event: KeyboardEvent) => {
      // In Safari, the Enter that ends a composition is only known by its code.
      const isComposing = event.isComposing || event.keyCode === 229
      if (event.key !== 'Enter' || event.shiftKey || isComposing) return
      event.preventDefault()
      control.form?.requestSubmit()
    },
  })
  control.value = text
  const given = control.value
  const read = () => (control.value === given ? text : control.value)
  return { ...buildField(label, control, note), read }
}
