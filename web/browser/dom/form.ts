import { type Attributes, type Child, element } from './element.ts'

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
