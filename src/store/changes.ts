import { hash, randomFillSync } from 'node:crypto'
import { limits } from '../contract/limits.ts'
import { findUnmet, type Precondition } from '../contract/parameters.ts'
import type { NewPlant, StoredPlant } from '../contract/shapes.ts'
import { type JournalRow, type Kind, toLine, toRow } from '../journal/row.ts'
import type {
  CreatedOnce,
  CreateKey,
  ImportOutcome,
  OnConflict,
  Replaced,
  Store,
  Version,
  VersionedPlant,
} from './store.ts'

/**
 * A write of plants, for both engines: how it becomes a change, what the change does to the rows,
 * how it is recorded for the journal, and who is told of it.
 */

/** One use of an idempotency key. */
export interface KeyUse extends CreateKey {
  readonly fingerprint: Uint8Array
  readonly version: Version
  readonly usedAt: number
}

/** The rows of the store inside one transaction. Each engine implements it. */
export interface Rows {
  find(id: bigint): VersionedPlant | undefined
  /** Adds the plant unless its id is taken. */
  insert(plant: VersionedPlant): boolean
  update(plant: VersionedPlant): void
  /** Deletes the plant that `find` returned. */
  delete(plant: VersionedPlant): void
  findKey(key: CreateKey): KeyUse | undefined
  /** Records the use of a key, in place of an expired one. */
  putKey(use: KeyUse): void
}

/** A write of plants as plain data. Versions and times are already chosen. */
export type Change = Readonly<
  | { kind: 'create'; plant: VersionedPlant }
  | {
      kind: 'create once'
      plant: VersionedPlant
      key: CreateKey
      fingerprint: Uint8Array
      usedAt: number
    }
  | { kind: 'replace'; plant: VersionedPlant; condition: Precondition }
  | { kind: 'delete'; id: bigint; condition: Precondition }
  | { kind: 'import'; plants: readonly VersionedPlant[]; onConflict: OnConflict }
> & {
  /** The token that asked for it, for the journal. */
  readonly tokenId: string | undefined
}

type Of<Name extends Change['kind']> = Extract<Change, { kind: Name }>

/** The outcome of a change. */
export type Outcome<One extends Change> = ReturnType<(typeof appliers)[One['kind']]>

/** The effect of each kind of change on the rows, defined once for both engines. */
const appliers = {
  create(rows: Rows, { plant }: Of<'create'>): Version | 'exists' {
    return rows.insert(plant) ? plant.version : 'exists'
  },

  'create once'(rows: Rows, change: Of<'create once'>): CreatedOnce | 'exists' | 'key reused' {
    const { plant, key, fingerprint, usedAt } = change
    const use = rows.findKey(key)
    if (use !== undefined && use.usedAt > usedAt - limits.keyLifetimeMs) {
      return Buffer.compare(use.fingerprint, fingerprint) === 0
        ? { version: use.version, isReplay: true }
        : 'key reused'
    }
    if (!rows.insert(plant)) return 'exists'
    rows.putKey({ ...key, fingerprint, version: plant.version, usedAt })
    return { version: plant.version, isReplay: false }
  },

  replace(rows: Rows, { plant, condition }: Of<'replace'>): Replaced | 'condition failed' {
    const current = rows.find(plant.id)
    if (findUnmet(condition, current?.version) !== undefined) return 'condition failed'
    if (current === undefined) rows.insert(plant)
    else rows.update(plant)
    return { kind: current === undefined ? 'created' : 'replaced', version: plant.version }
  },

  delete(rows: Rows, { id, condition }: Of<'delete'>): 'deleted' | 'absent' | 'condition failed' {
    const current = rows.find(id)
    if (current === undefined) return 'absent'
    if (findUnmet(condition, current.version) !== undefined) return 'condition failed'
    rows.delete(current)
    return 'deleted'
  },

  import(rows: Rows, { plants, onConflict }: Of<'import'>): ImportOutcome[] {
    return plants.map((plant) => importOne(rows, plant, onConflict))
  },
}

function importOne(rows: Rows, plant: VersionedPlant, onConflict: OnConflict): ImportOutcome {
  if (rows.insert(plant)) return 'stored'
  const current = rows.find(plant.id)
  if (current?.name === plant.name && current.tag === plant.tag) return 'already there'
  if (onConflict === 'keep') return 'conflict'
  rows.update(plant)
  return 'replaced'
}

/** Builds a recorder: it applies changes to rows, and records their effects for the journal. */
export function buildRecorder(rows: Rows) {
  let lines: string[] = []
  let tokenId: string | undefined
  const record = (kind: Kind, plant: StoredPlant) => void lines.push(toLine(kind, tokenId, plant))
  const recordedRows: Rows = {
    ...rows,
    insert(plant) {
      const isInserted = rows.insert(plant)
      if (isInserted) record('c', plant)
      return isInserted
    },
    update(plant) {
      rows.update(plant)
      record('r', plant)
    },
    delete(plant) {
      rows.delete(plant)
      record('d', plant)
    },
  }
  return {
    apply<One extends Change>(change: One): Outcome<One> {
      tokenId = change.tokenId
      const applyOne: (rows: Rows, change: never) => Outcome<Change> = appliers[change.kind]
      return applyOne(recordedRows, change as never) as Outcome<One>
    },
    /** Returns the row of what was recorded since it was last drained, unless that is nothing. */
    drain(): JournalRow | undefined {
      const row = lines.length > 0 ? toRow(lines) : undefined
      lines = []
      return row
    },
  }
}

type PlantWrites = Pick<
  Store,
  'createPlant' | 'createPlantOnce' | 'replacePlant' | 'deletePlant' | 'importPlants'
>

/** Queues a change. */
type Write = <One extends Change>(change: One) => Promise<Outcome<One>>

/** The writes of plants for both engines. Each becomes a change with a new version. */
export function buildPlantWrites(write: Write): PlantWrites {
  const toNew = (plant: NewPlant) => toVersioned(plant, randomVersion())

  return {
    createPlant: (plant, tokenId) => write({ kind: 'create', plant: toNew(plant), tokenId }),
    createPlantOnce(plant, key) {
      const use = { key, fingerprint: toFingerprint(plant), usedAt: Date.now() }
      const { tokenId } = key
      return write({ kind: 'create once', plant: toNew(plant), ...use, tokenId })
    },
    replacePlant: (plant, condition, tokenId) =>
      write({ kind: 'replace', plant: toNew(plant), condition, tokenId }),
    deletePlant: (id, condition, tokenId) => write({ kind: 'delete', id, condition, tokenId }),
    importPlants(plants, onConflict, tokenId) {
      const versioned = plants.map((plant) => ({ version: randomVersion(), ...plant }))
      return write({ kind: 'import', plants: versioned, onConflict, tokenId })
    },
  }
}

/** Equal for two plants if and only if their id, name and tag are equal. */
function toFingerprint({ id, name, tag }: NewPlant): Uint8Array {
  const text = JSON.stringify([String(id), name, ...(tag === undefined ? [] : [tag])])
  return hash('sha256', text, 'buffer')
}

const pool = new BigUint64Array(512)
let next = pool.length

/** A new version: 63 random bits from a pool, which saves system calls. */
export function randomVersion(): Version {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  return (pool[next++] as bigint) >> 1n
}

/** A plant with its version. Object spread would take five times as long. */
export function toVersioned({ id, name, tag }: NewPlant, version: Version): VersionedPlant {
  return tag === undefined ? { id, name, version } : { id, name, tag, version }
}

/**
 * Builds a watch. While anybody watches, it polls every `pollMs` and wakes the watchers when the
 * polled value changes.
 */
export function buildWatch<Value>(poll: () => Value | Promise<Value>, pollMs: number) {
  const watchers = new Set<() => void>()
  let pollTimer: NodeJS.Timeout | undefined
  let seen: Value | undefined

  /** Calls every watcher. */
  function wake(): void {
    for (const onChange of watchers) onChange()
  }

  async function pollOnce(): Promise<void> {
    try {
      const found = await poll()
      if (found !== seen) wake()
      seen = found
    } catch {
      // The store is unreachable. Watchers find out when they read.
      wake()
    }
    if (watchers.size > 0) pollTimer = setTimeout(pollOnce, pollMs).unref()
    else pollTimer = undefined
  }

  return {
    wake,
    /** Adds a watcher. Returns a function that removes it. */
    add(onChange: () => void): () => void {
      watchers.add(onChange)
      if (pollTimer === undefined) pollTimer = setTimeout(pollOnce, pollMs).unref()
      return () => void watchers.delete(onChange)
    },
  }
}
