import { element, fill } from '../dom.ts'
import { openStoreView } from './store-view.ts'
import { forgetToken, keepToken, recallToken, takeTokenFromAddress } from './token.ts'
import { buildSignIn, isTokenRefused, toSentence } from './token-session.ts'

/** The first view: what this is, with a place for the form. */
const welcome = document.querySelector('template') as HTMLTemplateElement
let life = new AbortController()

// Before anything is sent: the token of a link leaves the address bar.
const given = takeTokenFromAddress()
void showSignIn(given ?? recallToken())
// Somebody pasted another link into this tab.
addEventListener('hashchange', () => {
  const next = takeTokenFromAddress()
  if (next !== undefined) void showSignIn(next)
})

// "Back" can bring this page back as it was, from before somebody signed out.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) void showSignIn(recallToken())
})

async function showSignIn(token: string | undefined): Promise<void> {
  life.abort()
  life = new AbortController()
  const { signal } = life
  const signIn = buildSignIn(async (entered) => {
    try {
      await openStoreView(entered, { signal, onSignOut: signOut })
      keepToken(entered)
      return undefined
    } catch (error) {
      // Another link came first.
      if (signal.aborted) return undefined
      // A link with a wrong token does not sign anybody out, nor does a service that is away.
      if (isTokenRefused(error) && entered === recallToken()) forgetToken()
      return toSentence(error)
    }
  })
  // Avoids a flash of the form while the token is checked.
  if (token !== undefined) {
    const loading = element('p', { role: 'status' }, 'Loading…')
    fill(document.body, element('main', { class: 'welcome' }, loading))
    if (await signIn.enter(token)) return
  }
  fill(document.body, welcome.content.cloneNode(true))
  document.querySelector('slot')?.replaceWith(signIn.element)
  signIn.focus()
}

function signOut(): void {
  forgetToken()
  void showSignIn(undefined)
}
