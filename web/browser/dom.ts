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

/** A number as people read it. */
export const format = new Intl.NumberFormat('en').format

/** A number of things. */
export function toCount(count: number, thing: 'line' | 'plant'): string {
  return `${format(count)} ${thing}${count === 1 ? '' : 's'}`
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

export type Dialog = ReturnType<typeof openDialog>

/**
 * Opens a dialog over the page. The browser keeps the focus inside, closes it on Escape and gives
 * the focus back to where it was. `closed` resolves when it is closed, in whatever way.
 */
export function openDialog(title: string, content: readonly Node[], focus?: HTMLElement) {
  const dialog = element('dialog', { 'aria-label': title }, element('h2', title), ...content)
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  dialog.addEventListener('close', () => {
    dialog.remove()
    resolve()
  })
  document.body.append(dialog)
  dialog.showModal()
  focus?.focus()
  return { element: dialog, close: () => dialog.close(), closed }
}

/** A form that a script sends. Its fields say what is wrong, instead of the browser. */
export function buildForm(
  onSubmit: () => unknown,
  ...content: readonly (Attributes | Child)[]
): HTMLFormElement {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return element('form', { novalidate: true, submit }, ...content)
}

/** A button that acts. A second press does nothing until the first has had its effect. */
export function buildButton(
  label: string | Node,
  act: () => unknown,
  attributes: Attributes = {},
): HTMLButtonElement {
  const click = () => void whileBusy(button, act)
  const button = element('button', { type: 'button', click, ...attributes }, label)
  return button
}

/** Runs a task while a button is busy, unless it already is. */
export async function whileBusy(button: HTMLButtonElement, task: () => unknown): Promise<void> {
  if (button.ariaBusy === 'true') return
  button.ariaBusy = 'true'
  try {
    await task()
  } finally {
    button.ariaBusy = null
  }
}

/** A row of buttons. In a dialog, the first is the one that Enter presses. */
export function buildButtons(...buttons: readonly (HTMLElement | undefined)[]): HTMLElement {
  return element('div', { class: 'buttons' }, ...buttons)
}

let fields = 0

/**
 * Builds a field: a labelled control with a place for what is wrong with its value. The note
 * explains it, in small print. The browser does not complete or correct what is typed.
 */
export function buildField<Control extends HTMLElement>(
  label: string,
  control: Control,
  note?: string | undefined,
) {
  const id = `field-${++fields}`
  control.id = id
  control.setAttribute('autocomplete', 'off')
  control.spellcheck = false
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

/** A choice between values, each with its label. The first is chosen. */
export function buildChoice(
  ...values: readonly (readonly [value: string, label: string])[]
): HTMLSelectElement {
  return element('select', ...values.map(([value, label]) => element('option', { value }, label)))
}

/**
 * A field for a text of any kind. One line, unless its text has more. A browser changes line
 * breaks, so a text that nobody touched is read as it was given.
 */
export function buildTextField(
  label: string,
  text: string,
  { list, note }: { list?: string; note?: string | undefined } = {},
) {
  const control = /[\r\n]/.test(text)
    ? element('textarea', { dir: 'auto' })
    : element('input', { dir: 'auto', list })
  control.value = text
  const given = control.value
  const read = () => (control.value === given ? text : control.value)
  return { ...buildField<typeof control>(label, control, note), read }
}
