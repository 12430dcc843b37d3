import { createHash } from 'node:crypto'
import { findFailure, type Precondition } from '../contract/precondition.ts'
import type { NewPlant } from '../contract/shapes.ts'
import {
  type CreatedOnce,
  type CreateKey,
  type ImportedPlant,
  type ImportOutcome,
  keyLifetimeMs,
  type OnConflict,
  type Replaced,
  type Version,
  type VersionedPlant,
} from './store.ts'

/** What a key was used for. */
export interface KeyUse extends CreateKey {
  readonly fingerprint: Buffer
  readonly version: Version
  readonly usedAt: number
}

/** The rows of the store inside one transaction. Each engine brings its own; what is done with them is said here once. */
export interface Rows {
  find(id: bigint): VersionedPlant | undefined
  /** Adds the plant unless its id is taken. */
  insert(plant: VersionedPlant): boolean
  update(plant: VersionedPlant): void
  remove(id: bigint): void
  findKey(key: CreateKey): KeyUse | undefined
  /** Notes the use of a key, in place of one that is too old to count. */
  putKey(use: KeyUse): void
}

/** One write: what it does to the rows, and what it answers. */
export type Step<Outcome> = (rows: Rows) => Outcome

export function toCreate(plant: VersionedPlant): Step<Version | 'exists'> {
  return (rows) => (rows.insert(plant) ? plant.version : 'exists')
}

export function toCreateOnce(
  plant: VersionedPlant,
  key: CreateKey,
): Step<CreatedOnce | 'exists' | 'key reused'> {
  const fingerprint = toFingerprint(plant)
  const usedAt = Date.now()
  return (rows) => {
    const use = rows.findKey(key)
    if (use !== undefined && use.usedAt > usedAt - keyLifetimeMs) {
      return use.fingerprint.equals(fingerprint)
        ? { version: use.version, isReplay: true }
        : 'key reused'
    }
    if (!rows.insert(plant)) return 'exists'
    rows.putKey({ ...key, fingerprint, version: plant.version, usedAt })
    return { version: plant.version, isReplay: false }
  }
}

export function toReplace(
  plant: VersionedPlant,
  condition: Precondition,
): Step<Replaced | 'condition failed'> {
  return (rows) => {
    const current = rows.find(plant.id)
    if (findFailure(condition, current?.version) !== undefined) return 'condition failed'
    if (current === undefined) rows.insert(plant)
    else rows.update(plant)
    return { is: current === undefined ? 'created' : 'replaced', version: plant.version }
  }
}

export function toRemove(
  id: bigint,
  condition: Precondition,
): Step<'removed' | 'absent' | 'condition failed'> {
  return (rows) => {
    const current = rows.find(id)
    if (current === undefined) return 'absent'
    if (findFailure(condition, current.version) !== undefined) return 'condition failed'
    rows.remove(id)
    return 'removed'
  }
}

export function toImport(
  plants: readonly ImportedPlant[],
  onConflict: OnConflict,
  newVersion: () => Version,
): Step<ImportOutcome[]> {
  return (rows) =>
    plants.map((plant) => importOne(rows, { version: newVersion(), ...plant }, onConflict))
}

function importOne(rows: Rows, plant: VersionedPlant, onConflict: OnConflict): ImportOutcome {
  if (rows.insert(plant)) return 'stored'
  const current = rows.find(plant.id)
  if (current?.name === plant.name && current.tag === plant.tag) return 'already there'
  if (onConflict === 'keep') return 'conflict'
  rows.update(plant)
  return 'replaced'
}

/** The same for two plants exactly when their id, name and tag are. */
function toFingerprint({ id, name, tag }: NewPlant): Buffer {
  const text = JSON.stringify([String(id), name, ...(tag === undefined ? [] : [tag])])
  return createHash('sha256').update(text).digest()
}
