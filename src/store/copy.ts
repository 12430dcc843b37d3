import { createHash } from 'node:crypto'
import { toJson } from '../json/write.ts'
import type { Snapshot, Store, TokenRecord, VersionedPlant } from './store.ts'

/** A summary of all plants. Two stores have equal ones if and only if their plants are equal. */
export interface Summary {
  readonly plants: number
  /** The SHA-256 of an NDJSON export. */
  readonly checksum: string
}

/** The destination has a plant with the same id and different content. */
export class CopyConflict extends Error {
  readonly id: bigint

  constructor(id: bigint) {
    super(`plant ${id} has different content in the destination`)
    this.name = 'CopyConflict'
    this.id = id
  }
}

const everyPlant = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }

/** Something in a destination that its source does not have. */
export interface Unexpected {
  readonly kind: 'plant' | 'token'
  readonly id: string
}

/** Finds something in the destination that is not in the source, or differs there. */
export async function findUnexpected(
  source: Snapshot,
  destination: Snapshot,
  onPage: () => Promise<void>,
): Promise<Unexpected | undefined> {
  const hashes = new Set((await source.listTokens()).map(({ hash }) => hash.toString('hex')))
  const tokens = await destination.listTokens()
  const token = tokens.find(({ hash }) => !hashes.has(hash.toString('hex')))
  if (token !== undefined) return { kind: 'token', id: token.id }
  const plant = await findUnexpectedPlant(source, destination, onPage)
  return plant === undefined ? undefined : { kind: 'plant', id: String(plant) }
}

/** Walks both stores by id until the destination ends. */
async function findUnexpectedPlant(
  source: Snapshot,
  destination: Snapshot,
  onPage: () => Promise<void>,
): Promise<bigint | undefined> {
  const originals = walkEach(source)
  try {
    let original = await originals.next()
    for await (const copied of destination.walkPlants(everyPlant)) {
      await onPage()
      for (const plant of copied) {
        while (!original.done && original.value.id < plant.id) original = await originals.next()
        if (original.done || !isSamePlant(plant, original.value)) return plant.id
      }
    }
    return undefined
  } finally {
    await originals.return()
  }
}

async function* walkEach(snapshot: Snapshot): AsyncGenerator<VersionedPlant, void, void> {
  for await (const page of snapshot.walkPlants(everyPlant)) yield* page
}

function isSamePlant(one: VersionedPlant, other: VersionedPlant): boolean {
  return one.id === other.id && one.name === other.name && one.tag === other.tag
}

/** Reads every plant of a snapshot, page by page, and returns the summary. */
export async function summarize(
  snapshot: Snapshot,
  onPage: (page: readonly VersionedPlant[], plantsSoFar: number) => Promise<void>,
): Promise<Summary> {
  const hash = createHash('sha256')
  let plants = 0
  for await (const page of snapshot.walkPlants(everyPlant)) {
    let lines = ''
    for (const plant of page) lines += `${toJson(plant)}\n`
    hash.update(lines)
    plants += page.length
    await onPage(page, plants)
  }
  return { plants, checksum: hash.digest('hex') }
}

/** Copies plants with their versions. Plants that the destination already has stay as they are. */
export async function copyPage(
  destination: Store,
  plants: readonly VersionedPlant[],
): Promise<void> {
  if (plants.length === 0) return
  const outcomes = await destination.importPlants(plants, 'keep')
  const conflict = plants[outcomes.indexOf('conflict')]
  if (conflict !== undefined) throw new CopyConflict(conflict.id)
}

/** Copies tokens with their state. A token revoked since an earlier copy is revoked there, too. */
export async function copyTokens(
  destination: Store,
  tokens: readonly TokenRecord[],
): Promise<void> {
  const existing = new Map((await destination.listTokens()).map((token) => [token.id, token]))
  for (const token of tokens) {
    const found = existing.get(token.id)
    if (found === undefined) await destination.addToken(token)
    else if (token.revokedAt !== undefined && found.revokedAt === undefined) {
      await destination.revokeToken(token.id, token.revokedAt)
    }
  }
}
