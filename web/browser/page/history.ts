import type { PlantEvent } from '../../../client/index.ts'
import { parse } from '../../../client/json.ts'
import { openDialog } from '../dom/dialog.ts'
import { element, fill } from '../dom/element.ts'
import { buildButton, buildButtons } from '../dom/form.ts'
import { format, verbs } from './messages.ts'
import { showName, showTag } from './plant-text.ts'
import { isNumber, toSentence } from './sentences.ts'
import { readPath, type Session } from './session.ts'

/** The journal is read in pages, oldest change first. Each look stops after `maxChanges`. */
const pageSize = 1_000
const maxChanges = 50_000
/** Only the newest changes of the plant are shown. */
const maxShown = 200

/** Opens a dialog with the changes of a plant that the journal has, the newest first. */
export async function showHistory(session: Session, id: bigint): Promise<void> {
  const life = new AbortController()
  const items = element('ol', { class: 'history', reversed: true })
  const state = element('p', { class: 'note', role: 'status' })
  const more = buildButton('Look further', look, { hidden: true })
  const close = buildButton('Close', () => dialog.close())
  let after = ''
  let looked = 0
  let firstAt: string | undefined

  async function look(): Promise<void> {
    try {
      for (const end = looked + maxChanges; looked < end; ) {
        const path = `/events?limit=${pageSize}${after}`
        const events = await readPath(session, path, readEvents, life.signal)
        const last = events.at(-1)
        if (last === undefined) return finish(true)
        after = `&after=${last.position}`
        looked += events.length
        firstAt ??= events[0]?.at
        const ofPlant = events.filter(({ plant }) => plant.id === id)
        items.prepend(...ofPlant.map(toItem).reverse())
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
    element('div', { class: 'stack' }, items, state, buildButtons(close, more)),
  ])
  void look()
  await dialog.closed
  life.abort()
}

async function readEvents(answer: Response): Promise<readonly PlantEvent[]> {
  return parse(await answer.text(), (events: readonly PlantEvent[]) =>
    events.map(({ plant }) => plant),
  )
}

function toItem({ type, at, plant: { name, tag } }: PlantEvent): HTMLElement {
  const time = element('time', { datetime: at }, toTime(at))
  return element('li', time, ` ${verbs[type]}: `, showName(name), ' ', showTag(tag))
}

function toTime(at: string): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}
