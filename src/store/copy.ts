import { createHash } from 'node:crypto'
import { toJson } from '../json/write.ts'
import type { Snapshot, Store, TokenRecord, VersionedPlant } from './store.ts'

/** What a store holds, in short: the same for two stores exactly when their plants are the same. */
export interface Summary {
  readonly plants: number
  /** SHA-256 of the plants as lines of JSON, in ascending order of their ids: that of an NDJSON export. */
  readonly checksum: string
}

/** A plant is there with another content: the destination is not a copy of this store. */
export class CopyConflict extends Error {
  readonly id: bigint

  constructor(id: bigint) {
    super(`the plant ${id} has another content in the destination`)
    this.name = 'CopyConflict'
    this.id = id
  }
}

const everyPlant = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }

/** Reads every plant of a snapshot, a page at a time, and tells their summary at the end. */
export async function summarize(
  snapshot: Snapshot,
  onPage: (page: readonly VersionedPlant[]) => Promise<void> | void,
): Promise<Summary> {
  const hash = createHash('sha256')
  let plants = 0
  for await (const page of snapshot.walkPlants(everyPlant)) {
    let lines = ''
    for (const plant of page) lines += `${toJson(plant)}\n`
    hash.update(lines)
    plants += page.length
    await onPage(page)
  }
  return { plants, checksum: hash.digest('hex') }
}

/** Brings plants into the destination, each with its version. One that is there already is left as it is. */
export async function copyPage(
  destination: Store,
  plants: readonly VersionedPlant[],
): Promise<void> {
  if (plants.length === 0) return
  const outcomes = await destination.importPlants(plants, 'keep')
  const conflict = plants[outcomes.indexOf('conflict')]
  if (conflict !== undefined) throw new CopyConflict(conflict.id)
}

/** Brings tokens into the destination, with what is known of them. One that was revoked is revoked there, too. */
export async function copyTokens(
  destination: Store,
  tokens: readonly TokenRecord[],
): Promise<void> {
  const there = new Map((await destination.listTokens()).map((token) => [token.id, token]))
  for (const token of tokens) {
    const found = there.get(token.id)
    if (found === undefined) await destination.addToken(token)
    else if (token.revokedAt !== undefined && found.revokedAt === undefined) {
      await destination.revokeToken(token.id, token.revokedAt)
    }
  }
}
