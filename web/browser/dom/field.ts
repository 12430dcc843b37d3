import { element, fill } from './element.ts'

let fields = 0

/**
 * Builds a field: a labelled control with a place for what is wrong with its value. The note
 * explains it, in small print.
 */
export function buildField<Control extends HTMLElement>(
  label: string,
  control: Control,
  note?: string | undefined,
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
 * break the line. One that offers values has a single line, unless its text has more. A browser
 * changes line breaks, so a text that nobody touched is read as it was given.
 */
export function buildTextField(
  label: string,
  text: string,
  { list, note }: { list?: string; note?: string | undefined } = {},
) {
  const common = { spellcheck: 'false', autocomplete: 'off', dir: 'auto' }
  const control =
    list === undefined || /[\r\n]/.test(text)
      ? element('textarea', { ...common, rows: 1, keydown: sendOnEnter })
      : element('input', { ...common, list })
  control.value = text
  const given = control.value
  const read = () => (control.value === given ? text : control.value)
  return { ...buildField<typeof control>(label, control, note), read }
}

function sendOnEnter(event: KeyboardEvent): void {
  // In Safari, the Enter that ends a composition is only known by its code.
  const isComposing = event.isComposing || event.keyCode === 229
  if (event.key !== 'Enter' || event.shiftKey || isComposing) return
  event.preventDefault()
  const { form } = event.currentTarget as HTMLTextAreaElement
  form?.requestSubmit()
}
