import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { toJson } from '../json/to-json.ts'
import type { Snapshot, Store, TokenRecord, VersionedPlant } from '../store/store.ts'
import type { Entry } from './entry.ts'
import { withSnapshot } from './export.ts'
import { importEntries, putInto } from './import-entries.ts'

/** A summary of all plants. Two stores have equal ones if and only if their plants are equal. */
export interface Summary {
  readonly plants: number
  /** The SHA-256 of an NDJSON export. */
  readonly checksum: string
}

/** The stores do not allow a true copy. The message says what is different. */
export class CopyRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CopyRefused'
  }
}

interface Copying {
  readonly signal: AbortSignal
  /** The destination, as messages name it. */
  readonly to: string
  /** How many plants of how many were copied or compared. */
  onProgress(done: number, total: number): void
}

/** A page of a walk, so that a batch of the import is one. */
const batchEntries = 1_000
const everyPlant = { after: undefined, tag: undefined, limit: Number.POSITIVE_INFINITY }

/**
 * Imports the plants of a store, with their versions, and its tokens into another store, and
 * compares both. The tokens come last, because they give access to the destination.
 */
export async function copyStore(
  source: Store,
  destination: Store,
  copying: Copying,
): Promise<Summary> {
  const { signal, to, onProgress } = copying
  // A walk that ends early ends its snapshot, so this is another one.
  const stranger =
    compareTokens(await source.listTokens(), await destination.listTokens()).unexpected ??
    (await withSnapshot(source, (original) => comparePlants(original, destination, signal)))
      .unexpected
  if (stranger !== undefined) {
    throw new CopyRefused(
      `${to} holds ${stranger}, which the source does not have in this form. Nothing was copied: name an empty store.`,
    )
  }
  return withSnapshot(source, async (original) => {
    const summary = await copyPlants(original, destination, copying)
    let compared = summary.plants
    const plants = await comparePlants(original, destination, signal, (more) => {
      compared += more
      onProgress(compared, 2 * summary.plants)
    })
    requireNone(plants, to)
    const tokens = await original.listTokens()
    await copyTokens(tokens, destination)
    requireNone(compareTokens(tokens, await destination.listTokens()), to)
    return summary
  })
}

function requireNone({ unexpected, missing }: Difference, to: string): void {
  const found = unexpected ?? missing
  if (found === undefined) return
  throw new CopyRefused(
    `The stores differ: ${to} ${unexpected ? 'holds another' : 'lacks'} ${found}. Copy into an empty store while nothing writes to either.`,
  )
}

/** Pages of all plants. SQLite reads at once: without a turn, no signal would ever be seen. */
async function* walk(snapshot: Snapshot, signal: AbortSignal) {
  for await (const page of snapshot.walkPlants(everyPlant)) {
    await nextTurn()
    signal.throwIfAborted()
    yield page
  }
}

async function* walkEach(snapshot: Snapshot, signal: AbortSignal) {
  for await (const page of walk(snapshot, signal)) yield* page
}

/** The first plant or token that only one of two stores has in its form. */
interface Difference {
  readonly unexpected?: string | undefined
  readonly missing?: string | undefined
}

/** Compares the plants of a copy with those of its source, up to one that is unexpected. */
function comparePlants(
  source: Snapshot,
  destination: Store,
  signal: AbortSignal,
  onPage: (plants: number) => void = () => {},
): Promise<Difference> {
  return withSnapshot(destination, async (copy) => {
    let missing: string | undefined
    const originals = walkEach(source, signal)
    try {
      let original = await originals.next()
      for await (const page of walk(copy, signal)) {
        for (const plant of page) {
          while (!original.done && original.value.id < plant.id) {
            missing ??= `plant ${original.value.id}`
            original = await originals.next()
          }
          if (original.done || !isSamePlant(plant, original.value)) {
            return { unexpected: `plant ${plant.id}` }
          }
          original = await originals.next()
        }
        onPage(page.length)
      }
      if (!original.done) missing ??= `plant ${original.value.id}`
      return { missing }
    } finally {
      await originals.return(undefined)
    }
  })
}

function isSamePlant(one: VersionedPlant, other: VersionedPlant): boolean {
  return one.id === other.id && one.name === other.name && one.tag === other.tag
}

/** A token that was revoked since is there, and yet its present form is missing. */
function compareTokens(source: readonly TokenRecord[], copy: readonly TokenRecord[]): Difference {
  const own = new Set(source.map(toFingerprint))
  const there = new Set(copy.map((token) => toFingerprint(token) + isRevoked(token)))
  return {
    unexpected: toName(copy.find((token) => !own.has(toFingerprint(token)))),
    missing: toName(source.find((token) => !there.has(toFingerprint(token) + isRevoked(token)))),
  }
}

/** The members of a token that never change. */
function toFingerprint({ id, hash, name, scopes, createdAt, expiresAt }: TokenRecord): string {
  return JSON.stringify([id, hash.toString('hex'), name, scopes, createdAt, expiresAt])
}

function isRevoked({ revokedAt }: TokenRecord): boolean {
  return revokedAt !== undefined
}

function toName(token: TokenRecord | undefined): string | undefined {
  return token && `token ${token.id}`
}

/** Imports the plants of a snapshot. Every plant is read twice: to copy it and to compare it. */
async function copyPlants(
  source: Snapshot,
  destination: Store,
  { signal, to, onProgress }: Copying,
): Promise<Summary> {
  const total = await source.countPlants(undefined)
  const hash = createHash('sha256')
  let plants = 0

  /** Plants as entries, which are numbered like the lines of a file. */
  async function* toEntries(): AsyncGenerator<Entry[]> {
    for await (const page of walk(source, signal)) {
      hash.update(page.map((plant) => `${toJson(plant)}\n`).join(''))
      yield page.map((plant) => ({ line: ++plants, text: '', plant }))
    }
  }

  const { report, error } = await importEntries(toEntries(), {
    put: putInto(destination, 'fail'),
    rule: 'fail',
    signal,
    batchEntries,
    onBatch: ({ lastLine }) => onProgress(lastLine, 2 * total),
  })
  if (error !== undefined) throw error
  const [conflict] = report.refused
  if (conflict !== undefined) {
    throw new CopyRefused(
      `Plant ${conflict.id} changed in ${to} during the copy and was kept. Copy while nothing writes to either store.`,
    )
  }
  return { plants, checksum: hash.digest('hex') }
}

/** Copies tokens with their state. A token revoked since an earlier copy is revoked there, too. */
async function copyTokens(tokens: readonly TokenRecord[], destination: Store): Promise<void> {
  const existing = new Map((await destination.listTokens()).map((token) => [token.id, token]))
  for (const token of tokens) {
    const found = existing.get(token.id)
    if (found === undefined) await destination.addToken(token)
    else if (token.revokedAt !== undefined && !isRevoked(found)) {
      await destination.revokeToken(token.id, token.revokedAt)
    }
  }
}
