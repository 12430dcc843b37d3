/**
 * What each statement of the source does on the simulated server. A statement is recognised by its
 * text, and the places of its parameters are read from it. One that is not known fails the run.
 */
import {
  type Backend,
  type Effect,
  journalId,
  type Rows,
  server,
  since,
  type Tables,
} from './postgres.ts'
import { receiverStatements } from './receiver-statements.ts'
import { world } from './world.ts'

/** One call of a statement. */
export interface Call {
  readonly text: string
  readonly values: readonly unknown[]
  readonly backend: Backend
  readonly tables: Tables
  /** The value whose parameter a pattern finds in the text. */
  find<Value>(pattern: RegExp): Value
  /** Changes the tables: when the transaction commits, or at once if there is none. */
  write(effect: Effect, durability?: 'not synced'): void
}

export type Statement = [RegExp, (call: Call) => Rows | undefined | Promise<Rows | undefined>]

/** The one statement that is not of the source: locks plants and changes them, in any way. */
export const changePlants = 'UPDATE plants'

/** Runs a statement. */
export async function run(
  backend: Backend,
  text: string,
  values: readonly unknown[],
): Promise<Rows> {
  let found = known.get(text)
  if (found === undefined) {
    found = statements.find(([pattern]) => pattern.test(text))
    if (found === undefined) throw new Error(`test/sim does not know this statement: ${text}`)
    known.set(text, found)
  }
  const { tables, write } = server()
  const rows = await found[1]({
    ...{ text, values, backend, tables: tables() },
    find(pattern) {
      const [, number] = pattern.exec(text) ?? []
      if (number === undefined) throw new Error(`${pattern} is not in the statement: ${text}`)
      return values[Number(number) - 1] as never
    },
    write: (effect, durability) => write(backend, effect, durability ?? 'synced'),
  })
  return rows ?? []
}

const known = new Map<string, Statement>()

const statements: Statement[] = [
  [/pg_is_in_recovery/, () => undefined],
  [/^BEGIN$/, ({ backend }) => server().begin(backend)],
  [/^COMMIT$/, ({ backend }) => server().commit(backend)],
  [/^ROLLBACK$/, ({ backend }) => server().rollback(backend)],

  [new RegExp(`^${changePlants}$`), change],
  [/FROM plant_store\.plants\s+WHERE id >= \$1::bigint ORDER BY id\s+LIMIT \$2/, listPlants],

  [/^SELECT id FROM plant_store\.journal_life/, () => [{ id: journalId }]],
  [/INSERT INTO plant_store\.journal .*SELECT pg_catalog\.nextval/s, drawRow],
  [/string_agg\(virtualtransaction/, readHolders],
  [/LEFT JOIN LATERAL/, selectPage],
  [/LIMIT 1\) AS last ON seq >= since/, selectEnd],
  [/SELECT pg_catalog\.max\(seq\) AS last FROM plant_store\.journal$/, selectLast],
  [/SELECT seq, at, octet_length\(changes\) AS bytes, count/, selectOldest],
  [/DELETE FROM plant_store\.journal WHERE seq <= \$1/, deleteRows],

  ...receiverStatements,
]

async function change({ backend, values, write }: Call): Promise<Rows> {
  const [ids, names] = values as [string[], (string | null)[]]
  await server().lock(backend, ids)
  const plants = new Map(server().tables().plants)
  const found = ids.map((id, index) => {
    const [before = null, name = null] = [plants.get(id), names[index]]
    if (name === null) plants.delete(id)
    else plants.set(id, name)
    const kind = before === null ? 'c' : 'r'
    return { id, kind: name === null ? 'd' : kind, name: name ?? before }
  })
  write((tables) => {
    const after = new Map(tables.plants)
    for (const id of ids) {
      const name = plants.get(id)
      if (name === undefined) after.delete(id)
      else after.set(id, name)
    }
    return { plants: after }
  })
  return found
}

function listPlants({ values: [from, limit], tables }: Call): Rows {
  return [...tables.plants]
    .filter(([id]) => Number(id) >= Number(from))
    .sort(([one], [other]) => Number(one) - Number(other))
    .slice(0, Number(limit))
    .map(([id, name]) => [id, name, null]) as unknown as Rows
}

function drawRow({ backend, values }: Call): undefined {
  const [at, nonce, count, changes] = values as [number, number, number, string]
  server().draw(backend, { at, nonce, count, changes })
}

async function readHolders(call: Call): Promise<Rows> {
  const [row] = selectLast(call)
  // The locks are read after the snapshot of the rows is taken.
  await world().pause(world().between(0, 2))
  return [{ ...row, holders: server().holders().join(' ') || null }]
}

function selectLast({ tables: { journal } }: Call): Rows {
  return [{ last: toText(journal.at(-1)?.seq) }]
}

function selectPage({ find, tables }: Call): Rows {
  const from = find<number | null>(/coalesce\(\$(\d+)::bigint, life\.since\)/)
  const index = find<number>(/count - \$(\d+)::bigint/)
  const limit = find<number>(/row\.before < \$(\d+)::bigint/)
  const rows: Rows = []
  let before = 0
  for (const { seq, at, ...row } of tables.journal) {
    if (seq < (from ?? since)) continue
    if (before >= limit) break
    const isFirst = seq === since
    rows.push({ ...row, journalId, seq: String(seq), at: String(at), isFirst })
    before += seq === from ? row.count - index : row.count
  }
  return rows.length > 0 ? rows : [{ journalId, seq: null }]
}

function selectEnd({ find, tables }: Call): Rows {
  const upTo = Number(find(/seq <= \$(\d+)::bigint/))
  const row = tables.journal.findLast(({ seq }) => seq <= upTo)
  return [{ ...row, id: journalId, seq: toText(row?.seq) }]
}

function selectOldest({ values: [limit], tables }: Call): Rows {
  const rows = tables.journal.slice(0, Number(limit))
  return rows.map((row) => ({ ...row, bytes: row.changes.length }))
}

function deleteRows({ values: [upTo], tables, write }: Call): Rows {
  const isOld = ({ seq }: { seq: number }) => seq <= Number(upTo)
  const deleted = tables.journal.filter(isOld)
  world().note(`server: rows up to ${upTo} are deleted`)
  server().truth.noteDeleted(deleted)
  write(({ journal }) => ({ journal: journal.filter((row) => !isOld(row)) }))
  return deleted.map(({ count }) => ({ count }))
}

function toText(value: number | undefined): string | null {
  return value === undefined ? null : String(value)
}
