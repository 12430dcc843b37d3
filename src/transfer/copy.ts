import { createHash } from 'node:crypto'
import { toJson } from '../json/plant-json.ts'
import type { Snapshot, Store, TokenRecord, VersionedPlant } from '../store/store.ts'
import { withSnapshot } from './export.ts'
import { findPlants } from './import-entries.ts'
import { inTurns } from './turns.ts'

/** The stores do not allow a true copy. The message says what is different. */
export class CopyRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CopyRefused'
  }
}

/**
 * Imports the plants of a store, with their versions, and its tokens into another store, and
 * compares both. The tokens come last, because they give access to the destination. `to` is how
 * messages name it; `onProgress` gets how many plants of how many were copied or compared.
 */
export async function copyStore(
  source: Store,
  destination: Store,
  to: string,
  onProgress: (done: number, total: number) => void,
) {
  const stranger =
    findOther(await destination.listTokens(), await source.listTokens(), toOriginal) ??
    (await findStranger(source, destination))
  if (stranger !== undefined) {
    throw new CopyRefused(
      `${to} holds ${stranger}, which the source does not have in this form. Nothing was copied: name an empty store.`,
    )
  }

  function differ(what: string): CopyRefused {
    return new CopyRefused(
      `The stores differ: ${to} has other ${what}. Copy into an empty store while nothing writes to either.`,
    )
  }

  return withSnapshot(source, async (original) => {
    const total = 2 * (await original.countPlants(undefined))
    const summary = await summarize(walk(original), async (page, done) => {
      await destination.importPlants(page, 'keep')
      onProgress(done, total)
    })
    const { checksum } = await withSnapshot(destination, (copy) =>
      summarize(walk(copy), (_, done) => onProgress(summary.plants + done, total)),
    )
    if (checksum !== summary.checksum) throw differ('plants')
    const tokens = await original.listTokens()
    await copyTokens(tokens, destination)
    const copied = await destination.listTokens()
    const isSame = copied.length === tokens.length && !findOther(tokens, copied, toCurrent)
    if (!isSame) throw differ('tokens')
    return summary
  })
}

/** Pages of all plants. */
function walk(snapshot: Snapshot) {
  return inTurns(snapshot.walkPlants({ after: undefined, tag: undefined, limit: Infinity }))
}

/**
 * Counts plants, with the SHA-256 of their NDJSON export: two stores have equal ones if and only if
 * their plants are equal. `onPage` gets each page, and how many plants there were with it.
 */
async function summarize(
  pages: AsyncIterable<readonly VersionedPlant[]>,
  onPage: (page: readonly VersionedPlant[], done: number) => void | Promise<void>,
) {
  const hash = createHash('sha256')
  let plants = 0
  for await (const page of pages) {
    hash.update(page.map((plant) => `${toJson(plant)}\n`).join(''))
    plants += page.length
    await onPage(page, plants)
  }
  return { plants, checksum: hash.digest('hex') }
}

/** The first plant of the destination that the source does not have in this form. */
function findStranger(source: Store, destination: Store): Promise<string | undefined> {
  return withSnapshot(destination, async (copy) => {
    for await (const page of walk(copy)) {
      const originals = (await Array.fromAsync(findPlants(source, page))).flat()
      const isOther = (plant: VersionedPlant, index: number) => {
        const original = originals[index]
        return original === undefined || toJson(original) !== toJson(plant)
      }
      const stranger = page.find(isOther)
      if (stranger !== undefined) return `plant ${stranger.id}`
    }
    return undefined
  })
}

/** The first token that has no equal among others. */
function findOther(
  tokens: readonly TokenRecord[],
  others: readonly TokenRecord[],
  toText: (token: TokenRecord) => string,
): string | undefined {
  const known = new Set(others.map(toText))
  const other = tokens.find((token) => !known.has(toText(token)))
  return other && `token ${other.id}`
}

/** The members of a token that never change. */
function toOriginal({ id, hash, name, scopes, createdAt, expiresAt }: TokenRecord): string {
  return JSON.stringify([id, hash.toString('hex'), name, scopes, createdAt, expiresAt])
}

function toCurrent(token: TokenRecord): string {
  return toOriginal(token) + (token.revokedAt !== undefined)
}

/** Copies tokens with their state. A token revoked since an earlier copy is revoked there, too. */
async function copyTokens(tokens: readonly TokenRecord[], destination: Store): Promise<void> {
  const existing = new Map((await destination.listTokens()).map((token) => [token.id, token]))
  for (const token of tokens) {
    const found = existing.get(token.id)
    if (found === undefined) await destination.addToken(token)
    else if (token.revokedAt !== undefined && found.revokedAt === undefined) {
      await destination.revokeToken(token.id, token.revokedAt)
    }
  }
}
