import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { identifyFile } from '../../../src/store/sqlite/file.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'
import { type Position, type Store, toPlant } from '../../../src/store/store.ts'
import type { FeedEvent } from './feed.ts'
import { countMisplaced } from './feed-checker.ts'
import { keyedTag } from './traced-history.ts'
import type { Leftover } from './volatile-disk.ts'

/** What the service finds when it opens a database after a fault. */
export interface Recovered {
  readonly stored: ReadonlyMap<bigint, string>
  /** The damage to the database itself. */
  readonly damage: string | undefined
}

/** Writes the files of a folder into another one, which is emptied first. */
export function layOut(folder: string, root: string, files: ReadonlyMap<string, Leftover>): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const [path, { content, changes }] of files) {
    const copy = join(folder, relative(root, path))
    mkdirSync(dirname(copy), { recursive: true })
    const file = openSync(copy, 'w')
    writeSync(file, content)
    for (const { offset, data } of changes) {
      if (data === undefined) ftruncateSync(file, offset)
      else writeSync(file, data, 0, data.length, offset)
    }
    closeSync(file)
  }
}

/** Whether the journal has every change of the store, or only those since an upgrade. */
export type JournalReach = 'complete' | 'since an upgrade'

/** Opens a database as the service does, and reads and checks all of it. */
export async function recover(
  path: string,
  journal: JournalReach = 'complete',
): Promise<Recovered> {
  const stored = new Map<bigint, string>()
  try {
    const db = openConnection(path)
    const store = buildSqliteStore(db)
    try {
      const damage =
        findDamage(db) ??
        (await readInto(stored, store, db)) ??
        (journal === 'complete' ? await findFeedDamage(stored, store) : undefined)
      if (damage !== undefined) return { stored, damage }
    } finally {
      await store.close()
    }
    // The next start would refuse a file that is not identified as ours.
    return {
      stored,
      damage: identifyFile(path) === 'ours' ? undefined : 'no longer identified as ours',
    }
  } catch (error) {
    return { stored, damage: String(error) }
  }
}

/** Whether the journal, applied to an empty store, leads to anything else than what is stored. */
async function findFeedDamage(
  stored: ReadonlyMap<bigint, string>,
  store: Store,
): Promise<string | undefined> {
  const events: FeedEvent[] = []
  for (let from: Position = 'oldest'; ; ) {
    const page = await store.readJournal(from, 1_000)
    if (typeof page === 'string') return `the journal is ${page}`
    if (page.events.length === 0) break
    events.push(...page.events.map((event) => ({ ...event, plant: toPlant(event) })))
    from = page.end
  }
  const misplaced = countMisplaced(events, stored)
  return misplaced === 0 ? undefined : `${misplaced} changes of the journal are misplaced`
}

function findDamage(db: DatabaseSync): string | undefined {
  const row = db.prepare('PRAGMA integrity_check(1)').get() as { integrity_check: string }
  return row.integrity_check === 'ok' ? undefined : row.integrity_check
}

async function readInto(
  stored: Map<bigint, string>,
  store: Store,
  db: DatabaseSync,
): Promise<string | undefined> {
  const keys = db.prepare('SELECT key FROM keys').all()
  // In every test, a key ends with the id of its plant.
  const keyed = new Set(keys.map(({ key }) => /\d+$/.exec(String(key))?.[0]))
  let after: bigint | undefined
  for (;;) {
    const { plants, isWhole } = await store.listPlants({ after, tag: undefined, limit: 1_000_000 })
    for (const { id, name, tag } of plants) {
      stored.set(id, name)
      if (!keyed.delete(String(id)) && tag === keyedTag) return `plant ${id} without its key`
    }
    if (isWhole) return keyed.size === 0 ? undefined : `${keyed.size} keys without their plants`
    after = plants.at(-1)?.id
  }
}
