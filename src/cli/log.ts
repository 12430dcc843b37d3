import { setImmediate as nextTurn } from 'node:timers/promises'
import { untilAborted } from '../../client/request.ts'
import { WrongConfig } from '../config.ts'
import { toMs } from '../contract/durations.ts'
import { toPathId } from '../contract/values.ts'
import { butNot } from '../contract/wrong-value.ts'
import { buildReader, type JournalReader, type Read } from '../journal/reader.ts'
import { type JournalEvent, type Position, type Store, toPlant } from '../store/store.ts'
import { isSubjectId } from '../tokens/issuer.ts'
import type { JsonFlags } from './flags.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { withExistingStore } from './stores.ts'
import { type Context, type Terminal, toPrintable } from './terminal.ts'

interface LogFlags extends JsonFlags {
  readonly plant?: string
  readonly token?: string
  readonly since?: string
  readonly limit?: string
  readonly follow?: boolean
}

/** Which changes are shown. */
interface Filter {
  readonly plantId: bigint | undefined
  readonly tokenId: string | undefined
  readonly since: number
  /** How many of the changes so far are shown, the last ones; all of them unless given. */
  readonly limit: number | undefined
}

/** The lines of this many changes fit into memory. */
const maxLimit = 100_000

/** Shows who changed which plant, from the journal. With `--follow`, also what comes. */
export async function showLog(flags: LogFlags, { config, terminal }: Context): Promise<void> {
  const filter = toFilter(flags, Date.now())
  const signal = flags.follow ? stopOnSignal() : undefined
  await withExistingStore(config, async (store) => {
    let names = await readTokenNames(store)
    const write = flags.json ? toJsonLine : toLine
    const { limit = Infinity } = filter
    let held: string[] | undefined = []
    let found = 0
    const print = async (lines: readonly string[]) => {
      if (lines.length > 0) await untilAborted(terminal.print(lines.join('')), signal)
    }
    const show = async (events: readonly JournalEvent[]) => {
      const shown = events.filter((event) => isWanted(event, filter))
      if (shown.some(({ tokenId }) => isUnknown(tokenId, names)))
        names = await readTokenNames(store)
      const lines = shown.map((event) => `${write(event, names)}\n`)
      found += lines.length
      if (held === undefined || limit === Infinity) return print(lines)
      held.push(...lines)
      if (held.length > 2 * limit) held = held.slice(-limit)
    }
    const showHeld = async () => {
      await print(held?.slice(-limit) ?? [])
      held = undefined
      if (found === 0 && signal === undefined) terminal.tell('No changes found.')
    }
    await readAll(buildReader(store), { show, showHeld, terminal, signal })
  }).catch((error: unknown) => {
    // Nobody reads standard output.
    if (signal !== undefined) throwIfStopped(signal, 'Stopped.')
    throw error
  })
}

interface Reading {
  readonly show: (events: readonly JournalEvent[]) => Promise<void>
  /** Called when all changes so far were shown. */
  readonly showHeld: () => Promise<void>
  readonly terminal: Terminal
  readonly signal: AbortSignal | undefined
}

/** Shows the changes so far; with a signal, also those that come before it aborts. */
async function readAll(reader: JournalReader, reading: Reading): Promise<void> {
  const { show, showHeld, terminal, signal } = reading
  let after: Position | 'oldest' = 'oldest'

  async function showPage(page: Read): Promise<void> {
    if (page === 'off') throw journalIsOff()
    if (page === 'gone') {
      terminal.tell('Some changes in between are no longer kept.')
      after = 'oldest'
    } else {
      await show(page.events)
      after = page.end
    }
  }

  // Neither watching a store nor waiting for a signal keeps a process alive.
  const alive = setInterval(() => {}, 60_000)
  try {
    let page: Read
    do {
      page = await reader.read(after)
      await showPage(page)
      // Otherwise a long journal on SQLite that goes to a file would keep signals waiting.
      await nextTurn()
    } while (!signal?.aborted && (typeof page === 'string' || page.events.length > 0))
    await showHeld()
    while (signal?.aborted === false) {
      for await (const next of reader.follow(after, signal)) await showPage(next)
    }
  } finally {
    clearInterval(alive)
  }
}

function toFilter({ plant, token, since, limit }: LogFlags, now: number): Filter {
  const mistakes: string[] = []
  const plantId = plant === undefined ? undefined : toPathId(plant)
  if (plant !== undefined && plantId === undefined)
    mistakes.push(`--plant must be the id of a plant${butNot(plant)}.`)
  const ago = since === undefined ? undefined : toMs(since)
  if (since !== undefined && ago === undefined) {
    mistakes.push(`--since must be a number of s, m, h or d, such as 2h${butNot(since)}.`)
  }
  const isLimit = limit === undefined || (/^[1-9]\d{0,5}$/.test(limit) && Number(limit) <= maxLimit)
  if (!isLimit) mistakes.push(`--limit must be a number from 1 to ${maxLimit}${butNot(limit)}.`)
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return {
    plantId,
    tokenId: token,
    since: ago === undefined ? 0 : now - ago,
    limit: limit === undefined ? undefined : Number(limit),
  }
}

function isWanted(event: JournalEvent, filter: Filter): boolean {
  const { at, tokenId } = event
  if (at < filter.since) return false
  if (filter.plantId !== undefined && toPlant(event).id !== filter.plantId) return false
  return filter.tokenId === undefined || tokenId === filter.tokenId
}

function toLine(event: JournalEvent, names: TokenNames): string {
  const { at, type, tokenId } = event
  const change = type.replace('plant.', '').padEnd(8)
  const cells = [
    new Date(at).toISOString(),
    change,
    String(toPlant(event).id),
    describe(tokenId, names),
  ]
  return cells.map(toPrintable).join('  ')
}

function toJsonLine(event: JournalEvent, names: TokenNames): string {
  const { position, type, at, tokenId } = event
  const time = JSON.stringify(new Date(at).toISOString())
  const token = JSON.stringify({ tokenId: tokenId ?? null, tokenName: nameOf(tokenId, names) })
  // The id is inserted as text, because JSON.stringify does not take a bigint.
  return `{"position":"${position}","at":${time},"type":"${type}","plantId":${toPlant(event).id},${token.slice(1)}`
}

function journalIsOff(): WrongConfig {
  return new WrongConfig([
    'This store keeps no journal: JOURNAL_KEEP is off. Set it to 7d, and changes are kept from then on.',
  ])
}

/** The names of the tokens in the store, by their ids. */
type TokenNames = ReadonlyMap<string, string>

async function readTokenNames(store: Store): Promise<TokenNames> {
  return new Map((await store.listTokens()).map(({ id, name }) => [id, name]))
}

/** Whether a change was made with a token that has no name here: it is new, or was deleted. */
function isUnknown(id: string | undefined, names: TokenNames): boolean {
  if (id === undefined || isSubjectId(id)) return false
  return nameOf(id, names) === null
}

/** The name of a token; null if the change was made without one, or if it was deleted. */
function nameOf(id: string | undefined, names: TokenNames): string | null {
  if (id === undefined) return null
  return isOperator(id) ? 'PLANT_STORE_TOKEN' : (names.get(id) ?? null)
}

/** Describes who made a change. */
function describe(id: string | undefined, names: TokenNames): string {
  if (id === undefined) return 'a command on the store'
  const name = nameOf(id, names)
  if (name === null) return isSubjectId(id) ? id : `${id} (deleted)`
  return isOperator(id) ? name : `${id} "${name}"`
}

function isOperator(id: string): boolean {
  return id.startsWith('operator-')
}
