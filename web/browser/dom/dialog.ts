import { element } from './element.ts'

export type Dialog = ReturnType<typeof openDialog>

let dialogs = 0

/**
 * Opens a dialog over the page. The browser keeps the focus inside, closes it on Escape and gives
 * the focus back to where it was. `closed` resolves when it is closed, in whatever way.
 */
export function openDialog(title: string, content: readonly Node[], focus?: HTMLElement) {
  const id = `dialog-${++dialogs}`
  const heading = element('h2', { id }, title)
  const dialog = element('dialog', { 'aria-labelledby': id }, heading, ...content)
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
