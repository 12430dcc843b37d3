import { limits } from '../contract/limits.ts'
import { findUnmet, type Precondition } from '../contract/precondition.ts'
import { buildRecorder, type Recorder } from '../journal/row.ts'
import type {
  CreatedOnce,
  CreateKey,
  ImportOutcome,
  OnConflict,
  Replaced,
  Version,
  VersionedPlant,
} from './store.ts'

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
export type Change = Create | CreateOnce | Replace | Delete | Import

/** The token that asked for a change, for the journal. */
interface Attributed {
  readonly tokenId: string | undefined
}

export interface Create extends Attributed {
  readonly kind: 'create'
  readonly plant: VersionedPlant
}

export interface CreateOnce extends Attributed {
  readonly kind: 'create once'
  readonly plant: VersionedPlant
  readonly key: CreateKey
  readonly fingerprint: Uint8Array
  readonly usedAt: number
}

export interface Replace extends Attributed {
  readonly kind: 'replace'
  readonly plant: VersionedPlant
  readonly condition: Precondition
}

export interface Delete extends Attributed {
  readonly kind: 'delete'
  readonly id: bigint
  readonly condition: Precondition
}

export interface Import extends Attributed {
  readonly kind: 'import'
  readonly plants: readonly VersionedPlant[]
  readonly onConflict: OnConflict
}

/** The outcome of a change. */
export type Outcome<One extends Change> = ReturnType<(typeof appliers)[One['kind']]>

/** Applies a change to the rows of a transaction. */
export function apply<One extends Change>(rows: Rows, change: One): Outcome<One> {
  const applyOne: (rows: Rows, change: never) => Outcome<Change> = appliers[change.kind]
  return applyOne(rows, change as never) as Outcome<One>
}

/** The effect of each kind of change on the rows, defined once for both engines. */
const appliers = {
  create(rows: Rows, { plant }: Create): Version | 'exists' {
    return rows.insert(plant) ? plant.version : 'exists'
  },

  'create once'(rows: Rows, change: CreateOnce): CreatedOnce | 'exists' | 'key reused' {
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

  replace(rows: Rows, { plant, condition }: Replace): Replaced | 'condition failed' {
    const current = rows.find(plant.id)
    if (findUnmet(condition, current?.version) !== undefined) return 'condition failed'
    if (current === undefined) rows.insert(plant)
    else rows.update(plant)
    return { kind: current === undefined ? 'created' : 'replaced', version: plant.version }
  },

  delete(rows: Rows, { id, condition }: Delete): 'deleted' | 'absent' | 'condition failed' {
    const current = rows.find(id)
    if (current === undefined) return 'absent'
    if (findUnmet(condition, current.version) !== undefined) return 'condition failed'
    rows.delete(current)
    return 'deleted'
  },

  import(rows: Rows, { plants, onConflict }: Import): ImportOutcome[] {
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

/** Applies changes to rows and records their effects for the journal. */
export interface RecordedChanges extends Omit<Recorder, 'record'> {
  apply<One extends Change>(change: One): Outcome<One>
}

export function recordChanges(rows: Rows): RecordedChanges {
  const { record, ...recorder } = buildRecorder()
  let tokenId: string | undefined
  const recordedRows: Rows = {
    ...rows,
    insert(plant) {
      const isInserted = rows.insert(plant)
      if (isInserted) record('c', tokenId, plant)
      return isInserted
    },
    update(plant) {
      rows.update(plant)
      record('r', tokenId, plant)
    },
    delete(plant) {
      rows.delete(plant)
      record('d', tokenId, plant)
    },
  }
  return {
    ...recorder,
    apply(change) {
      tokenId = change.tokenId
      return apply(recordedRows, change)
    },
  }
}
