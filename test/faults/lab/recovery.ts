import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { identifyFile } from '../../../src/store/sqlite/file.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'
import { type Store, toPlant } from '../../../src/store/store.ts'
import { readAll } from '../../store/journal-pages.ts'
import { judge, type Verdict } from './checker.ts'
import { type History, toHistoryAt } from './history.ts'
import { keyedTag } from './load.ts'
import type { FeedEvent } from './mirror.ts'
import type { Random } from './random.ts'
import { newQuickFolder } from './shim.ts'
import type { Operation } from './trace.ts'
import { cuts as allCuts, buildVolatileDisk, type Cut, type Leftover } from './volatile-disk.ts'

/** What the service finds when it opens a database after a fault. */
export interface Recovered {
  readonly stored: ReadonlyMap<bigint, string>
  /** The changes of the journal. */
  readonly events: readonly FeedEvent[]
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

interface Recorded {
  readonly root: string
  readonly operations: readonly Operation[]
  /** After which operations the power is cut. */
  readonly moments: readonly number[]
  readonly random: Random
  readonly cuts?: readonly Cut[]
}

/** Lays out what a power cut of each kind leaves of a recorded disk, and looks at each folder. */
export async function cutPower(
  { root, operations, moments, random, cuts = allCuts }: Recorded,
  look: (folder: string, operation: Operation, cut: Cut) => Promise<void>,
): Promise<void> {
  const disk = buildVolatileDisk(root)
  const folder = join(newQuickFolder(), 'disk')
  const chosen = new Set(moments)
  for (const [number, operation] of operations.entries()) {
    disk.apply(operation)
    if (!chosen.has(number)) continue
    for (const cut of cuts) {
      layOut(folder, root, disk.cutPower(cut, random))
      await look(folder, operation, cut)
    }
  }
}

/** Opens a database as the service does, and reads and checks all of it. */
export async function recover(path: string): Promise<Recovered> {
  const stored = new Map<bigint, string>()
  const events: FeedEvent[] = []
  try {
    const db = openConnection(path)
    const store = buildSqliteStore(db)
    try {
      const damage = findDamage(db) ?? (await readInto(stored, events, store, db))
      if (damage !== undefined) return { stored, events, damage }
    } finally {
      await store.close()
    }
    // The next start would refuse a file that is not identified as ours.
    const isOurs = identifyFile(path) === 'ours'
    return { stored, events, damage: isOurs ? undefined : 'no longer identified as ours' }
  } catch (error) {
    return { stored, events, damage: String(error) }
  }
}

/** How often what is recovered contradicts the answers up to a moment of their clock. */
export function judgeRecovered(
  history: History,
  { stored, events }: Recovered,
  at = Number.POSITIVE_INFINITY,
): Verdict {
  const plants = [...stored]
  const state = { got: plants, walked: plants, exported: plants, events }
  return judge(toHistoryAt(history, at), state)
}

function findDamage(db: DatabaseSync): string | undefined {
  const row = db.prepare('PRAGMA integrity_check(1)').get() as { integrity_check: string }
  return row.integrity_check === 'ok' ? undefined : row.integrity_check
}

/** Reads the plants and the journal. Answers what is wrong with them or with the keys. */
async function readInto(
  stored: Map<bigint, string>,
  events: FeedEvent[],
  store: Store,
  db: DatabaseSync,
): Promise<string | undefined> {
  for (const event of await readAll(store, 1_000)) events.push({ ...event, plant: toPlant(event) })
  const keys = db.prepare('SELECT key FROM keys').all()
  // In every test, a key ends with the id of its plant.
  const keyed = new Set(keys.map(({ key }) => /-?\d+$/.exec(String(key).replace(/^key-/, ''))?.[0]))
  let after: bigint | undefined
  for (;;) {
    const { plants, next } = await store.listPlants({ after, tag: undefined, limit: 1_000_000 })
    for (const { id, name, tag } of plants) {
      stored.set(id, name)
      if (tag === keyedTag && !keyed.has(String(id))) return `plant ${id} without its key`
    }
    if (next === undefined) break
    after = next
  }
  const known = new Set([...stored.keys(), ...events.map(({ plant }) => plant.id)].map(String))
  const orphans = [...keyed].filter((id) => id === undefined || !known.has(id))
  return orphans.length === 0 ? undefined : `${orphans.length} keys without their plants`
}
