import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { toJson } from '../json/write.ts'
import type { Snapshot, Store, TokenRecord, VersionedPlant } from '../store/store.ts'
import type { Entry } from './entry.ts'
import { importEntries, putInto } from './import.ts'
import { withSnapshot } from './write.ts'

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
const whileStill = 'Copy into an empty store while nothing writes to either.'

/**
 * Imports the plants of a store, with their versions, and its tokens into another store, and
 * compares both. The tokens come last, because they give access to the destination.
 */
export async function copyStore(
  source: Store,
  destination: Store,
  copying: Copying,
): Promise<Summary> {
  await requireSubset(source, destination, copying)
  const [copied, tokens] = await withSnapshot(source, async (snapshot) => [
    await copyPlants(snapshot, destination, copying),
    await snapshot.listTokens(),
  ])
  const { plants } = copied
  const onPage = (done: number) => copying.onProgress(plants + done, 2 * plants)
  const found = await withSnapshot(destination, (snapshot) =>
    summarize(walk(snapshot, copying.signal), onPage),
  )
  requireSamePlants(copied, found)
  await copyTokens(destination, tokens)
  requireSameTokens(tokens, await destination.listTokens())
  return copied
}

/** Pages of all plants. SQLite reads at once: without a turn, no signal would ever be seen. */
async function* walk(snapshot: Snapshot, signal: AbortSignal) {
  for await (const page of snapshot.walkPlants(everyPlant)) {
    await nextTurn()
    signal.throwIfAborted()
    yield page
  }
}

/** Refuses a destination that is neither empty nor an unfinished copy of the source. */
async function requireSubset(
  source: Store,
  destination: Store,
  { signal, to }: Copying,
): Promise<void> {
  const found = await withSnapshot(destination, (there) =>
    withSnapshot(source, (here) => findUnexpected(here, there, signal)),
  )
  if (found === undefined) return
  throw new CopyRefused(
    `${to} holds ${found}, which the source does not have in this form. Nothing was copied: name an empty store.`,
  )
}

/** Finds something in the destination that is not in the source, or differs there. */
async function findUnexpected(
  source: Snapshot,
  destination: Snapshot,
  signal: AbortSignal,
): Promise<string | undefined> {
  const hashes = new Set((await source.listTokens()).map(({ hash }) => hash.toString('hex')))
  const tokens = await destination.listTokens()
  const token = tokens.find(({ hash }) => !hashes.has(hash.toString('hex')))
  if (token !== undefined) return `token ${token.id}`
  const originals = walkEach(source)
  try {
    let original = await originals.next()
    for await (const page of walk(destination, signal)) {
      for (const plant of page) {
        while (!original.done && original.value.id < plant.id) original = await originals.next()
        if (original.done || !isSamePlant(plant, original.value)) return `plant ${plant.id}`
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

/** Imports the plants of a snapshot. Every plant is read twice: to copy it and to compare it. */
async function copyPlants(
  source: Snapshot,
  destination: Store,
  { signal, to, onProgress }: Copying,
): Promise<Summary> {
  const total = await source.countPlants(undefined)
  const pages = hashed(walk(source, signal))
  const { report, error } = await importEntries(toEntries(pages), {
    put: putInto(destination, 'fail'),
    rule: 'fail',
    signal,
    batchEntries,
    onSettled: ({ lastLine }) => onProgress(lastLine, 2 * total),
  })
  if (error !== undefined) throw error
  const [conflict] = report.refused
  if (conflict !== undefined) {
    throw new CopyRefused(
      `Plant ${conflict.id} changed in ${to} during the copy and was kept. Copy while nothing writes to either store.`,
    )
  }
  return pages.summary()
}

/** Plants as entries, which are numbered like the lines of a file. */
async function* toEntries(
  pages: AsyncIterable<readonly VersionedPlant[]>,
): AsyncGenerator<Entry[]> {
  let line = 0
  for await (const page of pages) yield page.map((plant) => ({ line: ++line, text: '', plant }))
}

/** The same pages, and the summary of those that were read. */
function hashed(pages: AsyncIterable<readonly VersionedPlant[]>) {
  const hash = createHash('sha256')
  let plants = 0
  return {
    async *[Symbol.asyncIterator]() {
      for await (const page of pages) {
        let lines = ''
        for (const plant of page) lines += `${toJson(plant)}\n`
        hash.update(lines)
        plants += page.length
        yield page
      }
    },
    summary: (): Summary => ({ plants, checksum: hash.digest('hex') }),
  }
}

async function summarize(
  pages: AsyncIterable<readonly VersionedPlant[]>,
  onPage: (done: number) => void,
): Promise<Summary> {
  const read = hashed(pages)
  let done = 0
  for await (const page of read) {
    done += page.length
    onPage(done)
  }
  return read.summary()
}

/** Copies tokens with their state. A token revoked since an earlier copy is revoked there, too. */
async function copyTokens(destination: Store, tokens: readonly TokenRecord[]): Promise<void> {
  const existing = new Map((await destination.listTokens()).map((token) => [token.id, token]))
  for (const token of tokens) {
    const found = existing.get(token.id)
    if (found === undefined) await destination.addToken(token)
    else if (token.revokedAt !== undefined && found.revokedAt === undefined) {
      await destination.revokeToken(token.id, token.revokedAt)
    }
  }
}

/** Requires that a copy has the plants of its source. */
function requireSamePlants(source: Summary, copy: Summary): void {
  if (source.plants !== copy.plants) {
    throw different(`the source has ${source.plants} plants, the destination ${copy.plants}`)
  }
  if (source.checksum === copy.checksum) return
  throw different(`the checksums differ: ${source.checksum} and ${copy.checksum}`)
}

/** Requires that a copy has every token of its source, in the same state. */
function requireSameTokens(source: readonly TokenRecord[], copy: readonly TokenRecord[]): void {
  const fingerprints = new Set(copy.map(toFingerprint))
  const missing = source.filter((token) => !fingerprints.has(toFingerprint(token))).length
  if (missing > 0) throw different(`tokens that are missing or different: ${missing}`)
}

/** The members of a token that must be the same. Services keep updating its last use. */
function toFingerprint(token: TokenRecord): string {
  const { id, hash, name, scopes, createdAt, expiresAt, revokedAt } = token
  const isRevoked = revokedAt !== undefined
  return JSON.stringify([id, hash.toString('hex'), name, scopes, createdAt, expiresAt, isRevoked])
}

function different(how: string): CopyRefused {
  return new CopyRefused(`The stores differ: ${how}. ${whileStill}`)
}
