import { PlantStoreError } from '../../../client/index.ts'
import { buildButtons, openDialog, whileBusy } from '../dom/dialog.ts'
import { element, fill } from '../dom/element.ts'
import { parseExact, toRefusal } from './files.ts'
import { format, verbs } from './messages.ts'
import { isNumber, toSentence } from './sentences.ts'
import type { Session } from './session.ts'

interface HistoryEvent {
  readonly position: string
  readonly type: keyof typeof verbs
  readonly at: string
  readonly plant: { readonly id: string; readonly name: string; readonly tag?: string }
}

/** The journal is read in pages, oldest change first. Each look stops after `maxChanges`. */
const pageSize = 1_000
const maxChanges = 50_000
/** Only the newest changes of the plant are shown. */
const maxShown = 200
/** Longer names and tags are cut. */
const maxText = 200

/** Opens a dialog with the changes of a plant that the journal has, the newest first. */
export async function showHistory(session: Session, id: bigint): Promise<void> {
  const life = new AbortController()
  const items = element('ol', { class: 'history', reversed: true })
  const state = element('p', { class: 'note', role: 'status' })
  const more = element(
    'button',
    { type: 'button', hidden: true, click: () => void whileBusy(more, look) },
    'Look further',
  )
  const close = element('button', { type: 'button', click: () => dialog.close() }, 'Close')
  let after: string | undefined
  let looked = 0
  let firstAt: string | undefined

  async function look(): Promise<void> {
    try {
      for (const end = looked + maxChanges; looked < end; ) {
        const events = await readPage(session, after, life.signal)
        const last = events.at(-1)
        if (last === undefined) return finish(true)
        after = last.position
        looked += events.length
        firstAt ??= events[0]?.at
        items.prepend(
          ...events
            .filter(({ plant }) => plant.id === String(id))
            .map(toItem)
            .reverse(),
        )
        while (items.childElementCount > maxShown) items.lastElementChild?.remove()
        fill(state, `Looking: ${format(looked)} changes of all plants so far …`)
      }
      finish(false)
    } catch (error) {
      if (life.signal.aborted) return
      const isOff = isNumber(error, 40400)
      fill(state, isOff ? 'This service keeps no record of changes.' : toSentence(error))
    }
  }

  function finish(isWhole: boolean): void {
    more.hidden = isWhole
    const found = items.childElementCount === 0 ? 'Nothing was found. ' : ''
    const since = firstAt === undefined ? '' : ` since ${toTime(firstAt)}`
    const range = `the ${format(looked)} changes of all plants${since}`
    const rest = isWhole ? 'Older ones, if any, are not kept.' : 'There are later ones.'
    fill(state, `${found}Looked at ${range}. ${rest}`)
  }

  const dialog = openDialog(`What happened to plant ${id}`, [
    element('div', { class: 'import' }, items, state, buildButtons(close, more)),
  ])
  void whileBusy(more, look)
  await dialog.closed
  life.abort()
}

async function readPage(
  { url, token }: Session,
  after: string | undefined,
  signal: AbortSignal,
): Promise<readonly HistoryEvent[]> {
  const headers = { Authorization: `Bearer ${token}`, Accept: 'application/json' }
  const from = after === undefined ? '' : `&after=${after}`
  try {
    const response = await fetch(`${url}/events?limit=${pageSize}${from}`, { headers, signal })
    const text = await response.text()
    if (!response.ok) throw toRefusal(response.status, text)
    return parseExact<readonly HistoryEvent[]>(text)
  } catch (cause) {
    if (cause instanceof PlantStoreError) throw cause
    throw new PlantStoreError('The connection was lost.', { cause })
  }
}

function toItem({ type, at, plant: { name, tag } }: HistoryEvent): HTMLElement {
  return element(
    'li',
    {},
    element('time', { datetime: at }, toTime(at)),
    ` ${verbs[type]}: `,
    element('bdi', {}, toShort(name) || '“” no name'),
    ' ',
    tag === undefined
      ? element('span', { class: 'none' }, 'no tag')
      : element('bdi', { class: 'chip' }, toShort(tag) || '“” empty'),
  )
}

function toShort(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText).toWellFormed()}…` : text
}

function toTime(at: string): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}
