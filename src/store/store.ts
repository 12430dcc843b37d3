import { Failure } from '../contract/errors.ts'
import type { Precondition } from '../contract/precondition.ts'
import type { Scope } from '../contract/scopes.ts'
import type { NewPlant, StoredPlant } from '../contract/shapes.ts'
import type { Soon } from './soon.ts'

/** Names one state of one plant: random, so that it never comes back, not even from an old backup. */
export type Version = bigint

export interface VersionedPlant extends StoredPlant {
  readonly version: Version
}

/** The key that a client gave a create, and whose client it was. */
export interface CreateKey {
  readonly tokenId: string
  readonly key: string
}

export interface CreatedOnce {
  readonly version: Version
  readonly isReplay: boolean
}

export interface Replaced {
  readonly is: 'replaced' | 'created'
  readonly version: Version
}

export interface PlantQuery {
  readonly after: bigint | undefined
  readonly tag: string | undefined
  readonly limit: number
}

export interface PlantPage {
  readonly plants: readonly StoredPlant[]
  /** Whether it ends where the query ends, and not because it became too large. */
  readonly isWhole: boolean
}

/** A plant to bring in. One that comes from another store keeps the version that it had there. */
export type ImportedPlant = NewPlant & { readonly version?: Version }

/** What becomes of a plant whose id is taken by another one. */
export type OnConflict = 'keep' | 'replace'

/** What became of a plant that was brought in: "already there" has the same content, "conflict" has another and is kept. */
export type ImportOutcome = 'stored' | 'already there' | 'conflict' | 'replaced'

/** The store as it was at one moment, however long it is read and whatever is written meanwhile. */
export interface Snapshot {
  /** How many plants there are, or how many have this tag. Takes as long as it takes. */
  countPlants(tag: string | undefined): Promise<number>
  /** Every plant that the query finds, in ascending order of the ids, in pieces that can be held. One walk at a time. */
  walkPlants(query: PlantQuery): AsyncIterable<readonly VersionedPlant[]>
  listTokens(): Promise<TokenRecord[]>
  close(): Promise<void>
}

/** What a file with a whole store in it holds. */
export interface FileSummary {
  readonly plants: number
  readonly tokens: number
}

/** How long a key is kept. */
export const keyLifetimeMs = 24 * 60 * 60 * 1000
/** A page that has become this large ends there. */
export const pageBytes = 1024 * 1024

/** A token as the store knows it: never the token itself, only its SHA-256. Times are milliseconds since 1970. */
export interface TokenRecord {
  readonly id: string
  readonly hash: Buffer
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  readonly lastUsedAt: number | undefined
}

export interface TokenUse {
  readonly id: string
  readonly at: number
}

/**
 * Where plants and tokens are kept. Each method is one atomic step; a write resolves when it is on disk. Expected
 * outcomes are values; a `Failure` says that the store could not do it, and whether it may have been done.
 */
export interface Store {
  createPlant(plant: NewPlant): Soon<Version | 'exists'>
  /** Creates the plant once for this key: again with the same plant, it tells what it did the first time. */
  createPlantOnce(plant: NewPlant, key: CreateKey): Soon<CreatedOnce | 'exists' | 'key reused'>
  getPlant(id: bigint): Soon<VersionedPlant | undefined>
  /** Plants in ascending order of their ids: as many as asked for, or fewer when they are large. */
  listPlants(query: PlantQuery): Promise<PlantPage>
  /** The ids that a list of plants would have, whatever the size of the plants. */
  listIds(query: PlantQuery): Promise<bigint[]>
  replacePlant(plant: StoredPlant, condition: Precondition): Soon<Replaced | 'condition failed'>
  deletePlant(id: bigint, condition: Precondition): Soon<'deleted' | 'absent' | 'condition failed'>
  /** Brings in many plants at once. When it fails, some of them may be in: again, it finds them there. */
  importPlants(plants: readonly ImportedPlant[], onConflict: OnConflict): Promise<ImportOutcome[]>
  /** Opens a snapshot, to be closed by whoever asked for it. There are few at a time: they cost the store. */
  openSnapshot(): Promise<Snapshot>
  /** Forgets some of the keys that were used before this time. Answers whether there are none left. */
  forgetKeys(usedBefore: number): Promise<boolean>

  addToken(token: TokenRecord): Promise<void>
  /** Adds the token only to a store that holds no plant and no token yet. */
  addFirstToken(token: TokenRecord): Promise<'added' | 'not first'>
  findToken(hash: Buffer): Promise<TokenRecord | undefined>
  listTokens(): Promise<TokenRecord[]>
  revokeToken(id: string, at: number): Promise<'revoked' | 'revoked before' | 'unknown'>
  /** Notes when tokens were last used. Told late and in bulk, so it may lag behind. */
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>
  /** A number that changes with every revocation, whichever process made it. */
  tokenRevision(): Promise<bigint>

  /** Whether the queue of waiting writes is full, so that further ones would be refused. */
  isFull(): boolean
  /** Resolves when the store answers. */
  ping(): Promise<void>
  /** Finishes the writes that were accepted, then lets go of the store. */
  close(): Promise<void>
}

/** What an operator wants to know of a store that can go away and come back. */
export interface StoreEvents {
  onLost(reason: unknown): void
  onFound(): void
}

/** The store cannot be used as configured. The message is one line for the operator. */
export class UnusableStore extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options)
    this.name = 'UnusableStore'
  }
}

/** How many snapshots may be open at a time in one process. */
export const maxSnapshots = 4

/** As many snapshots are open as may be: refused at once. */
export function tooManySnapshots(): Failure {
  return new Failure(
    50300,
    `The service sends ${maxSnapshots} exports already. Try again when one has ended.`,
  )
}

/** The queue of the store is full: refused at once, so that nobody waits for what cannot be served. */
export function overloaded(): Failure {
  return new Failure(50300, 'The service is overloaded and stored nothing. Try again in a moment.')
}
