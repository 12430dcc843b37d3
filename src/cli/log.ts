import { setImmediate as nextTurn } from 'node:timers/promises'
import { WrongConfig } from '../config.ts'
import { toExactJson } from '../contract/schema.ts'
import { buildReader, type PageOrEnd } from '../journal/reader.ts'
import { type JournalEvent, type Position, type Store, toPlant } from '../store/store.ts'
import { isSubjectId } from '../tokens/issuer.ts'
import type { Call, Printed } from './commands.ts'
import { toPrintable, toTime } from './terminal.ts'

/** Shows who changed which plant, from the journal; with `--follow`, also as it happens. */
export async function showLog({ store, flags, terminal }: Call<'log'>): Promise<Printed> {
  const { plant, token, since = Infinity, limit, follow } = flags
  const oldestAt = Date.now() - since
  const toLine = flags.json ? toJsonLine : toTextLine
  const reader = buildReader(store)
  let names = await readTokenNames(store)
  let after: Position | 'oldest' = 'oldest'
  let found = 0

  function isWanted(event: JournalEvent): boolean {
    if (event.at < oldestAt || (token !== undefined && event.tokenId !== token)) return false
    return plant === undefined || toPlant(event).id === plant
  }

  function toLines(page: PageOrEnd): string[] {
    if (page === 'off') {
      throw new WrongConfig([
        'This store keeps no journal: JOURNAL_KEEP is off. Set it to 7d, and changes are kept from then on.',
      ])
    }
    after = page === 'gone' ? 'oldest' : page.end
    if (page === 'gone') terminal.tell('Some changes in between are no longer kept.')
    const shown = page === 'gone' ? [] : page.events.filter(isWanted)
    found += shown.length
    return shown.map((event) => `${toLine(event, names)}\n`)
  }

  let last: string[] = []
  let page: PageOrEnd
  do {
    page = await reader.read(after)
    last = [...last, ...toLines(page)].slice(-(limit ?? Infinity))
    if (limit === undefined) await terminal.print(last.splice(0).join(''))
    // Neither a file nor SQLite makes this loop wait, so it would never see a signal.
    await nextTurn()
  } while (typeof page === 'string' || page.events.length > 0)
  await terminal.print(last.join(''))
  // Following ends with the process, or a failure.
  const untilKilled = new AbortController().signal
  // The timers that watch a store do not keep a process alive.
  const alive = follow ? setInterval(() => {}, 60_000) : undefined
  try {
    while (follow) {
      for await (const next of reader.follow(after, untilKilled)) {
        // A new token may have made its changes.
        names = await readTokenNames(store)
        await terminal.print(toLines(next).join(''))
      }
    }
  } finally {
    clearInterval(alive)
  }
  return found === 0 ? { note: 'No changes found.' } : {}
}

function toTextLine(event: JournalEvent, names: TokenNames): string {
  const { at, type, tokenId } = event
  const change = type.replace('plant.', '').padEnd(8)
  const cells = [toTime(at), change, String(toPlant(event).id), describe(tokenId, names)]
  return toPrintable(cells.join('  '))
}

function toJsonLine(event: JournalEvent, names: TokenNames): string {
  const { position, type, at, tokenId = null } = event
  const plantId = toExactJson(toPlant(event).id)
  const tokenName = nameOf(event.tokenId, names)
  return JSON.stringify({ position, at: toTime(at), type, plantId, tokenId, tokenName })
}

/** The beginning of the id of PLANT_STORE_TOKEN. */
const operatorPrefix = 'operator-'

/** The names of the tokens in the store, by their ids. */
type TokenNames = ReadonlyMap<string, string>

async function readTokenNames(store: Store): Promise<TokenNames> {
  return new Map((await store.listTokens()).map(({ id, name }) => [id, name]))
}

/** The name of a token; null if the change was made without one, or if it was deleted. */
function nameOf(id: string | undefined, names: TokenNames): string | null {
  if (id?.startsWith(operatorPrefix)) return 'PLANT_STORE_TOKEN'
  return names.get(id ?? '') ?? null
}

/** Describes who made a change. */
function describe(id: string | undefined, names: TokenNames): string {
  if (id === undefined) return 'a command on the store'
  const name = nameOf(id, names)
  if (name === null) return isSubjectId(id) ? id : `${id} (deleted)`
  return id.startsWith(operatorPrefix) ? name : `${id} "${name}"`
}
