import { element } from './element.ts'

/** An open dialog. */
export interface Dialog {
  readonly element: HTMLDialogElement
  close(): void
  /** Resolves when the dialog is closed, in whatever way. */
  readonly closed: Promise<void>
}

let dialogs = 0

/**
 * Opens a dialog over the page. The browser keeps the focus inside, closes it on Escape and gives
 * the focus back to where it was.
 */
export function openDialog(title: string, content: readonly Node[], focus?: HTMLElement): Dialog {
  const id = `dialog-${++dialogs}`
  const dialog = element(
    'dialog',
    { 'aria-labelledby': id },
    element('h2', { id }, title),
    ...content,
  )
  const closed = new Promise<void>((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove()
      resolve()
    })
  })
  document.body.append(dialog)
  dialog.showModal()
  focus?.focus()
  return { element: dialog, close: () => dialog.close(), closed }
}

/** The row of buttons at the end of a dialog. The first is the one that Enter presses. */
export function buildButtons(...buttons: readonly HTMLButtonElement[]): HTMLElement {
  return element('div', { class: 'buttons' }, ...buttons)
}

/** Runs a task while a button is busy: a second press does nothing. */
export async function whileBusy(button: HTMLButtonElement, task: () => Promise<unknown>) {
  if (button.ariaBusy === 'true') return
  button.ariaBusy = 'true'
  try {
    await task()
  } finally {
    button.ariaBusy = null
  }
}
