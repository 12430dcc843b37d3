import { openDialog } from '../dom/dialog.ts'
import { fill } from '../dom/element.ts'
import { buildOwnChanges, type Change } from './changes.ts'
import { downloadPlants, type FileFormat } from './files.ts'
import { buildFrame } from './frame.ts'
import { acceptDrops, importPlants } from './import-dialog.ts'
import { followChanges } from './live.ts'
import { describeChanges, describeList } from './messages.ts'
import { addPlant, type DialogParts, deletePlant, editPlant } from './plant-dialogs.ts'
import { buildPlantList, type Query } from './plant-list.ts'
import type { Plant } from './rows.ts'
import { isTokenRefused, toSentence } from './sentences.ts'
import { openSession, type Session } from './session.ts'
import { buildSignIn } from './sign-in.ts'
import { keepToken } from './token.ts'

/** How long changes after an import count as its own. */
const quietMs = 2_000

/** Opens the view of the plants. Rejects if the service refuses the token. Returns its end. */
export async function openStoreView(
  token: string,
  { onSignOut }: { onSignOut(): void },
): Promise<() => void> {
  const end = new AbortController()
  const { signal } = end
  const own = buildOwnChanges()
  let isImporting = false
  let following = new AbortController()
  let session = open(token)
  const list = buildPlantList({
    client: () => session.client,
    mayWrite: () => session.mayWrite(),
    actions: { onEdit: (id) => void change(id, edit), onDelete: (id) => void change(id, remove) },
    onChange: () => frame.showList(describeList(list.describe())),
    onFailure(error, again) {
      if (!meetRefusal(error)) frame.showProblem(toSentence(error), again)
    },
  })
  const frame = buildFrame({
    list,
    onSignOut,
    onQuery: (change) => attempt(() => reopen(change)),
    onGoTo: (id) => attempt(() => goTo(id)),
    onEarlier: () => attempt(() => showBefore(list.showEarlier())),
    onFirst: () => attempt(() => showBefore(reopen({}))),
    onAdd: () => attempt(add),
    onImport: () => importFile(),
    onExport: (format) => attempt(() => exportTo(format)),
  })
  const dialogs: DialogParts = {
    client: () => session.client,
    expect: own.note,
    onTokenRefused: askForToken,
  }

  function open(next: string): Session {
    return openSession(next, {
      onReach: (isReached) => frame.showReach(isReached),
      onSearched: () => list.noteSearched(),
    })
  }

  await list.open(list.describe().query)
  frame.allowWriting(session.mayWrite())
  fill(document.body, ...frame.elements)
  list.fillScreen()
  follow()
  addEventListener('scroll', list.fillScreen, { passive: true, signal })
  acceptDrops(signal, (file) => session.mayWrite() && importFile(file))
  addEventListener('resize', list.fillScreen, { signal })

  function follow(): void {
    following.abort()
    following = new AbortController()
    void followChanges({
      session,
      signal: AbortSignal.any([signal, following.signal]),
      onChanges: showChanges,
      onGap: () => void attempt(() => list.refresh()),
      onRefused: meetRefusal,
      onOff: () => frame.showOff(),
    })
    // What changed between the first list and the start of the stream.
    void session.streaming.then(() => attempt(() => list.refresh()))
  }

  function showChanges(changes: readonly Change[]): void {
    const seen = list.apply(changes)
    const news = seen.filter((change) => !own.isOwn(change) && !isImporting)
    for (const { plant } of news) list.table.mark(plant.id)
    if (news.length > 0) frame.announce(describeChanges(news))
  }

  /** Runs what somebody asked for, and says what went wrong. */
  async function attempt(task: () => Promise<void>): Promise<void> {
    try {
      await task()
      frame.showProblem(undefined)
    } catch (error) {
      if (signal.aborted) return
      if (!meetRefusal(error)) frame.showProblem(toSentence(error), () => void attempt(task))
    }
  }

  function meetRefusal(error: unknown): boolean {
    if (!isTokenRefused(error)) return false
    askForToken(error)
    return true
  }

  /** Asks for another token over all that is open, so that nothing is lost. */
  function askForToken(error: unknown): void {
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
      frame.allowWriting(session.mayWrite())
      dialog.close()
      follow()
      return undefined
    })
    const dialog = openDialog('Sign in again', [signIn.element])
    dialog.element.dataset.signIn = ''
    dialog.element.addEventListener('cancel', onSignOut)
    signIn.refuse(toSentence(error))
    signIn.focus()
  }

  async function goTo(id: bigint): Promise<void> {
    const shown = await list.goTo(id)
    if (shown === undefined) return
    list.table.mark(shown.id)
    list.table.focus(shown.id)
    const neighbour = shown.id < id ? 'previous' : 'next'
    frame.announce(
      shown.id === id
        ? `Plant ${id}.`
        : `No plant has the id ${id}. The ${neighbour} one is ${shown.id}.`,
    )
  }

  async function reopen(change: Partial<Query>): Promise<void> {
    scrollTo({ top: 0 })
    await list.open({ ...list.describe().query, ...change })
  }

  async function exportTo(format: FileFormat): Promise<void> {
    const { tag } = list.describe().query
    await downloadPlants(session, format, tag)
    frame.announce(
      tag === undefined ? 'Exported all plants.' : 'Exported the plants with this tag.',
    )
  }

  async function showBefore(loaded: Promise<void>): Promise<void> {
    await loaded
    list.fillScreen()
    // Both buttons are gone, and the focus with them.
    if (list.describe().hasTop) list.table.focus()
  }

  async function add(): Promise<void> {
    const plant = await addPlant(dialogs)
    if (plant === undefined) return
    await show({ type: 'plant.created', plant }, `Plant ${plant.id} is stored.`)
  }

  function importFile(file?: File): void {
    if (document.querySelector('dialog') !== null) return
    const parts = { session: () => session, onTokenRefused: askForToken }
    isImporting = true
    void importPlants(parts, file).then(async () => {
      await attempt(() => list.refresh())
      setTimeout(() => {
        isImporting = false
      }, quietMs)
    })
  }

  async function change(id: bigint, act: (id: bigint) => Promise<void>): Promise<void> {
    await attempt(() => act(id))
  }

  async function edit(id: bigint): Promise<void> {
    const found = await session.client.get(id)
    if (found === undefined) return noteGone(id)
    const plant = await editPlant(dialogs, found)
    if (plant === undefined) return
    await show({ type: 'plant.replaced', plant }, `Plant ${id} is changed.`)
  }

  async function remove(id: bigint): Promise<void> {
    const found = await session.client.get(id)
    if (found === undefined) return noteGone(id)
    if (!(await deletePlant(dialogs, found))) return
    await show({ type: 'plant.deleted', plant: found }, `Plant ${id} is deleted.`)
  }

  function noteGone(id: bigint): void {
    const plant: Plant = { id, name: '' }
    list.apply([{ type: 'plant.deleted', plant }])
    frame.announce(`Plant ${id} is no longer there.`)
  }

  /** Shows an own change at once, before the stream tells of it. */
  async function show(change: Change, sentence: string): Promise<void> {
    list.apply([change])
    frame.announce(sentence)
    if (change.type === 'plant.deleted') return
    await list.show(change.plant)
  }

  return () => {
    end.abort()
    list.close()
  }
}
