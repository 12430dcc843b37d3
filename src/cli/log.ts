import { setImmediate as nextTurn } from 'node:timers/promises'
import { untilAborted } from '../../client/request.ts'
import { WrongConfig } from '../config.ts'
import { buildReader, type Read } from '../journal/reader.ts'
import { type JournalEvent, type Position, type Store, toPlant } from '../store/store.ts'
import { isSubjectId } from '../tokens/issuer.ts'
import type { Call, Printed } from './command.ts'
import type { logFlags } from './flag-tables.ts'
import type { ValuesOf } from './flags.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { toPrintable } from './terminal.ts'

/** Shows who changed which plant, from the journal. With `--follow`, also what comes. */
export async function showLog({ store, flags, terminal }: Call<typeof logFlags>): Promise<Printed> {
  const { since = Infinity, limit = Infinity } = flags
  const filter = { ...flags, since: Date.now() - since }
  const signal = flags.follow ? stopOnSignal() : undefined
  let names = await readTokenNames(store)
  const write = flags.json ? toJsonLine : toLine
  /** With a limit, the last lines so far, until all changes so far were read. */
  let held: string[] | undefined = limit === Infinity ? undefined : []
  let found = 0

  async function toLines(events: readonly JournalEvent[]): Promise<string[]> {
    const shown = events.filter((event) => isWanted(event, filter))
    if (shown.some(({ tokenId }) => isUnknown(tokenId, names))) names = await readTokenNames(store)
    found += shown.length
    return shown.map((event) => `${write(event, names)}\n`)
  }

  async function print(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await untilAborted(terminal.print(lines.join('')), signal)
  }

  try {
    for await (const changes of readChanges(store, signal)) {
      if (changes === 'gone') terminal.tell('Some changes in between are no longer kept.')
      else if (changes === 'all so far') {
        await print(held ?? [])
        held = undefined
      } else if (held === undefined) await print(await toLines(changes))
      else held = [...held, ...(await toLines(changes))].slice(-limit)
    }
  } catch (error) {
    // Nobody reads standard output.
    if (signal !== undefined) throwIfStopped(signal, 'Stopped.')
    throw error
  }
  return found === 0 && signal === undefined ? { note: 'No changes found.' } : {}
}

type Changes = readonly JournalEvent[] | 'all so far' | 'gone'

/** The changes so far; with a signal, also those that come before it aborts. */
async function* readChanges(
  store: Store,
  signal: AbortSignal | undefined,
): AsyncGenerator<Changes, void, void> {
  const reader = buildReader(store)
  let after: Position | 'oldest' = 'oldest'

  function toChanges(page: Read): Changes {
    if (page === 'off') throw journalIsOff()
    after = page === 'gone' ? 'oldest' : page.end
    return page === 'gone' ? page : page.events
  }

  // Neither watching a store nor waiting for a signal keeps a process alive.
  const alive = setInterval(() => {}, 60_000)
  try {
    let changes: Changes
    do {
      changes = toChanges(await reader.read(after))
      yield changes
      // Otherwise a long journal on SQLite that goes to a file would keep signals waiting.
      await nextTurn()
    } while (!signal?.aborted && changes.length > 0)
    yield 'all so far'
    while (signal?.aborted === false) {
      for await (const page of reader.follow(after, signal)) yield toChanges(page)
    }
  } finally {
    clearInterval(alive)
  }
}

type Filter = Pick<ValuesOf<typeof logFlags>, 'plant' | 'token'> & { readonly since: number }

function isWanted(event: JournalEvent, { plant, token, since }: Filter): boolean {
  const { at, tokenId } = event
  if (at < since) return false
  if (plant !== undefined && toPlant(event).id !== plant) return false
  return token === undefined || tokenId === token
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
