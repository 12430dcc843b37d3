import type { StoredPlant } from '../../../client/index.ts'
import { element, fill, openDialog } from '../dom.ts'
import { buildFrame, describeChanges } from './frame.ts'
import { buildPlantList, type Change, type Query } from './list.ts'
import { followChanges, type LiveParts } from './live.ts'
import {
  addPlant,
  type DialogParts,
  type Done,
  deletePlant,
  editPlant,
  undo,
} from './plant-dialogs.ts'
import { acceptDrops, downloadPlants, importPlants } from './plant-files.ts'
import { forgetToken, keepToken, recallToken, takeTokenFromAddress } from './token.ts'
import {
  buildSignIn,
  clearFailures,
  isNumber,
  isTokenRefused,
  isUnanswered,
  openSession,
  type Session,
  toSentence,
} from './token-session.ts'

/** How long changes after an import count as its own. */
const quietMs = 2_000

/** How often the page asks whether the service answers, and how long it waits for that. */
const pulseMs = 1_000

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
      await openStoreView(entered, signal)
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

/** Opens the view of the plants, until the signal aborts. Rejects if the token is refused. */
async function openStoreView(token: string, signal: AbortSignal): Promise<void> {
  /** How many tasks are changing plants: meanwhile, the stream may report their own changes. */
  let changing = 0
  /** Whether something that was asked for has failed because the service did not answer. */
  let isListAway = false
  let following = new AbortController()
  const place: LiveParts['place'] = { position: undefined }
  let session = open(token)
  const list = buildPlantList({
    client: () => session.client,
    onEdit: (id) => void change(() => askFor(id, editPlant)),
    onDelete: (id) => void change(() => askFor(id, deletePlant)),
    onChange: () => frame.showList(session.mayWrite()),
  })
  const frame = buildFrame({
    list,
    onSignOut: signOut,
    onQuery: (change) => attempt(async () => void (await reopen(change))),
    onGoTo: (id) => attempt(() => goTo(id)),
    onMore: () => attempt(() => load(list.showMore())),
    onEarlier: () => attempt(() => load(list.showEarlier())),
    onFirst: () => attempt(() => load(reopen({}))),
    onAdd: () => void change(async () => show(await addPlant(dialogs))),
    onImport: () => void change(() => importFile()),
    onExport: (format) => attempt(() => downloadPlants(session, format, list.describe().query.tag)),
  })
  const dialogs: DialogParts = {
    session: () => session,
    onTokenRefused: askForToken,
  }

  function open(next: string): Session {
    const onStream = (isOpen: boolean) => frame.showStream(isOpen ? 'open' : 'connecting')
    return openSession(next, onStream, () => list.noteSearched())
  }

  signal.addEventListener('abort', list.close)
  await list.open(list.describe().query)
  signal.throwIfAborted()
  fill(document.body, ...frame.elements)
  follow()
  const importDropped = (file?: File) => {
    const isFree = session.mayWrite() && document.querySelector('dialog[open]') === null
    if (isFree) void change(() => importFile(file))
  }
  acceptDrops(window, importDropped, { signal })
  document.addEventListener('visibilitychange', follow, { signal })
  const pulse = setInterval(checkHealth, pulseMs)
  signal.addEventListener('abort', () => clearInterval(pulse))

  /** Asks whether the service still answers: a silent stream may be dead. */
  async function checkHealth(): Promise<void> {
    if (document.hidden) return
    const options = { method: 'HEAD', signal: AbortSignal.timeout(pulseMs) }
    const answer = await fetch(`${session.url}/healthz`, options).catch(() => undefined)
    // A proxy answers for a service that does not.
    if (!frame.showReach(answer?.ok ?? false)) return
    clearFailures('connection')
    if (isListAway) void attempt(() => list.refresh())
  }

  /** A hidden page follows nothing: all tabs of a browser share six connections to a service. */
  function follow(): void {
    following.abort()
    if (document.hidden) return
    following = new AbortController()
    void followChanges({
      session,
      place,
      signal: AbortSignal.any([signal, following.signal]),
      onChanges: showChanges,
      onGap: () => void attempt(() => list.refresh()),
      onRefused: askForToken,
      onOff: () => frame.showStream('off'),
    })
  }

  function showChanges(changes: readonly Change[]): void {
    // Those that were made here are in the list already.
    const news = list.apply(changes)
    if (changing > 0 || news.length === 0) return
    for (const { plant } of news) list.table.mark(plant.id)
    frame.announce(describeChanges(news))
  }

  /** Runs what somebody asked for, and says what went wrong. */
  async function attempt(task: () => Promise<void>): Promise<void> {
    frame.showProblem()
    isListAway = false
    try {
      await task()
    } catch (error) {
      if (signal.aborted) return
      if (isTokenRefused(error)) return askForToken(error)
      isListAway = isUnanswered(error)
      frame.showProblem(toSentence(error), () => attempt(task))
    }
  }

  /** Runs a task that changes plants. */
  async function change(task: () => Promise<void>): Promise<void> {
    changing++
    await attempt(task)
    changing--
  }

  /** Asks for another token over all that is open, so that nothing is lost. */
  function askForToken(error: unknown): void {
    frame.showStream(isNumber(error, 40102) ? 'expired' : 'refused')
    if (signal.aborted || document.querySelector('dialog[data-sign-in]')) return
    const signIn = buildSignIn(async (entered) => {
      const next = open(entered)
      try {
        await next.client.list({ pageSize: 1 }).next()
      } catch (failure) {
        return toSentence(failure)
      }
      session = next
      keepToken(entered)
      dialog.close()
      clearFailures('token')
      follow()
      // The refused request may have been for rows of the list.
      void attempt(() => list.refresh())
      return undefined
    })
    const dialog = openDialog('Sign in again', [signIn.element])
    dialog.element.dataset.signIn = ''
    dialog.element.addEventListener('cancel', (event) => {
      if (document.querySelectorAll('dialog').length === 1) return signOut()
      event.preventDefault()
      signIn.refuse('Sign in to keep what you typed.')
    })
    signIn.refuse(toSentence(error))
    signIn.focus()
  }

  async function goTo(id: bigint): Promise<void> {
    const { activeElement: field } = document
    const shown = await list.goTo(id)
    const { query, isLoading } = list.describe()
    if (shown !== undefined) {
      list.table.mark(shown.id)
      // Somebody may be typing into another field by now.
      if (document.activeElement === field) list.table.focus(shown.id)
      if (shown.id === id) return frame.announce(`Plant ${id}.`)
      // Another list has taken the place of this one.
    } else if (isLoading) return
    const isWhole = query.tag === undefined && query.name === undefined
    const absent = `No plant ${isWhole ? '' : 'of this list '}has the id ${id}.`
    const nearest = shown && `The ${shown.id < id ? 'previous' : 'next'} one is ${shown.id}.`
    frame.announce(nearest === undefined ? absent : `${absent} ${nearest}`)
  }

  async function reopen(change: Partial<Query>): Promise<StoredPlant | undefined> {
    scrollTo({ top: 0 })
    await list.open({ ...list.describe().query, ...change })
    return list.describe().rows[0]
  }

  /** Loads rows, and gives the focus to one: the button that had it may be gone. */
  async function load(loading: Promise<StoredPlant | undefined>): Promise<void> {
    const { activeElement: button, body } = document
    const row = await loading
    // Unless somebody has moved the focus.
    const { activeElement: now } = document
    if (row !== undefined && (now === button || now === body)) list.table.focus(row.id)
  }

  async function importFile(dropped?: File): Promise<void> {
    await importPlants(dialogs, dropped)
    await attempt(() => list.refresh())
    await new Promise((resolve) => setTimeout(resolve, quietMs))
  }

  async function askFor(id: bigint, ask: typeof editPlant | typeof deletePlant): Promise<void> {
    const found = await session.client.get(id)
    // Somebody has clicked twice, or opened another dialog meanwhile.
    if (document.querySelector('dialog') !== null) return
    if (found !== undefined) return show(await ask(dialogs, found))
    list.apply([{ type: 'plant.deleted', plant: { id, name: '' } }])
    frame.announce(`Plant ${id} is no longer there.`)
  }

  /**
   * Says what somebody did here, with a way to undo it, and shows it before the stream tells of it.
   * If the list cannot be loaded for that, only the loading is tried again.
   */
  async function show(done: Done | undefined): Promise<void> {
    if (done === undefined) return
    const isOwn = done.now !== done.before
    const [own, others] =
      done.now === undefined ? ['deleted', 'was already gone'] : ['saved', 'stays as it is']
    const outcome = isOwn ? own : others
    frame.showDone(
      `Plant ${done.id} ${outcome}.`,
      isOwn ? () => change(() => takeBack(done)) : undefined,
    )
    await attempt(() => showState(done))
  }

  async function takeBack(done: Done): Promise<void> {
    try {
      await undo(dialogs, done)
    } catch (error) {
      if (!isNumber(error, 41200)) throw error
      frame.showDone('Nothing was undone.')
      const sentence = `Somebody else has changed plant ${done.id} since then. It stays as it is now.`
      return frame.showProblem(sentence)
    }
    frame.showDone(`Plant ${done.id} is as it was before.`)
    await attempt(() => showState({ id: done.id, before: done.now, now: done.before }))
  }

  async function showState({ id, before, now }: Done): Promise<void> {
    const place = list.indexOf(id)
    const plant = now ?? before ?? { id, name: '' }
    list.apply([{ type: now === undefined ? 'plant.deleted' : 'plant.replaced', plant }])
    if (now !== undefined) await list.show(now)
    // The element that had the focus is gone.
    if (document.activeElement !== document.body) return
    const { rows } = list.describe()
    const nearest = rows[Math.min(place, rows.length - 1)]
    if (nearest === undefined) frame.focusAdd()
    else list.table.focus(now === undefined ? nearest.id : id)
  }
}
