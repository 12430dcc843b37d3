import { buildField, buildForm, element, icon, whileBusy } from '../dom.ts'
import { findTokenFault } from './token.ts'

type SignIn = ReturnType<typeof buildSignIn>

/** Builds the form that asks for a token. `onToken` tries one and says what is wrong with it. */
export function buildSignIn(onToken: (token: string) => Promise<string | undefined>) {
  const input = element('input', { type: 'password', autocomplete: 'off', spellcheck: 'false' })
  const field = buildField('Token', input)
  const button = element('button', { type: 'submit', class: 'primary' }, 'Sign in')

  async function attempt(): Promise<boolean> {
    // Tokens are often pasted with spaces around them.
    const token = input.value.trim()
    const fault = findTokenFault(token) ?? (await onToken(token))
    field.refuse(fault)
    if (fault !== undefined) input.focus()
    return fault === undefined
  }

  return {
    element: buildForm(() => whileBusy(button, attempt), field.element, button),
    /** Tries a token as if somebody had typed it. Resolves to whether it was taken. */
    enter(token: string): Promise<boolean> {
      input.value = token
      return attempt()
    },
    refuse: field.refuse,
    focus: () => input.focus(),
  }
}

/** The first view: what this is, and the form. */
export function buildWelcome(signIn: SignIn): HTMLElement {
  return element(
    'main',
    { class: 'welcome' },
    element(
      'div',
      { class: 'card' },
      element('div', { class: 'brand' }, icon('leaf'), element('h1', 'Plant Store')),
      signIn.element,
      element(
        'p',
        { class: 'note' },
        'The service prints a token at its first start. For another one, run ',
        element('code', 'npx plant-store token create --name me'),
        ' on the machine that runs the service. Your token stays in this tab.',
      ),
      element('p', { class: 'note' }, element('a', { href: 'docs' }, 'API reference')),
    ),
  )
}
