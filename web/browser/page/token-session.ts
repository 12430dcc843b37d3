import { PlantStore } from '../../../client/plant-store.ts'
import { PlantStoreError } from '../../../client/plant-store-error.ts'
import { buildField, buildForm, element, fill, whileBusy } from '../dom.ts'
import { findTokenFault } from './token.ts'

export type Session = ReturnType<typeof openSession>

/**
 * A token at work: the client that carries it. `onStream` learns when a stream of events opens and
 * when it ends, `onSearched` that a part of a search was answered.
 */
export function openSession(
  token: string,
  onStream: (isOpen: boolean) => void,
  onSearched: () => void,
) {
  /** Where the service is: the folder of this page, without a slash at the end. */
  const url = new URL('.', location.href).href.replace(/\/$/, '')
  let scopes: readonly string[] = []

  const watchedFetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (/[?&]name=/.test(String(input)) && response.ok) onSearched()
    scopes = response.headers.get('Token-Scopes')?.split(' ') ?? scopes
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream')
    if (!isStream || response.body === null) return response
    onStream(true)
    const { readable, writable } = new TransformStream()
    const end = () => onStream(false)
    response.body.pipeTo(writable).then(end, end)
    return new Response(readable, response)
  }

  return {
    token,
    client: new PlantStore({ url, token, fetch: watchedFetch }),
    url,
    /** Whether the token may write. Known after the first list. */
    mayWrite: (): boolean => scopes.includes('plants:write'),
  }
}

/** The sentence to show for a failure: the service's own, where it answered. */
export function toSentence(error: unknown): string {
  if (!(error instanceof PlantStoreError)) throw error
  if (error.error !== undefined) return error.message
  return 'The service does not answer. Nothing that you typed is lost: try again in a moment.'
}

/** Whether the service refused the token. */
export function isTokenRefused(error: unknown): boolean {
  return error instanceof PlantStoreError && error.status === 401
}

/** Whether the service refused with this number. */
export function isNumber(error: unknown, number: number): boolean {
  return error instanceof PlantStoreError && error.error === number
}

/** Whether the service did not answer at all. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof PlantStoreError && error.error === undefined
}

/** Shows a failure until its cause is gone. */
export function showFailure(target: Element, error: unknown): void {
  const cause = isUnanswered(error) ? 'connection' : isTokenRefused(error) ? 'token' : undefined
  fill(target, element('span', { 'data-cause': cause }, toSentence(error)))
}

/** Removes the failures that had this cause, which is gone. */
export function clearFailures(cause: 'connection' | 'token'): void {
  for (const failure of document.querySelectorAll(`[data-cause="${cause}"]`)) failure.remove()
}

/** Builds the form that asks for a token. `onToken` tries one and says what is wrong with it. */
export function buildSignIn(onToken: (token: string) => Promise<string | undefined>) {
  const input = element('input', { type: 'password' })
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
