import type { Order } from '../contract/parameters.ts'
import type { Precondition } from '../contract/precondition.ts'
import type { Scope } from '../contract/scopes.ts'
import type { NewPlant, StoredPlant } from '../contract/shapes.ts'
import type { Stretch } from '../journal/bound.ts'
import type { Position } from '../journal/position.ts'
import type { JournalPage } from '../journal/row.ts'
import type { StoreMeasures } from './measures.ts'
import type { ReceiverStore } from './receivers.ts'

export type { Position } from '../journal/position.ts'
export {
  type EventType,
  type JournalEvent,
  type Journaling,
  type JournalPage,
  toPlant,
} from '../journal/row.ts'
export type * from './measures.ts'

/** Names one state of one plant. It is random, so it never recurs, even after a restore. */
export type Version = bigint

export interface VersionedPlant extends StoredPlant {
  readonly version: Version
}

type FoundPlant = VersionedPlant | undefined

/** The idempotency key of a create, and the token that it belongs to. */
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

export interface ListQuery extends PlantQuery {
  /** Ascending, unless given. In descending order, ids after `after` are smaller. */
  readonly order?: Order | undefined
}

export interface PlantPage {
  readonly plants: readonly StoredPlant[]
  /** Whether the page ends where the query ends, and not because its texts have 1 MiB. */
  readonly isWhole: boolean
}

/** A plant to import. One that comes from another store keeps its version. */
export type ImportedPlant = NewPlant & { readonly version?: Version }

/** Whether another plant with the id of an imported one is kept or replaced. */
export type OnConflict = 'keep' | 'replace'

/** "already there" has the same content; "conflict" has another content, which is kept. */
export type ImportOutcome = 'stored' | 'already there' | 'conflict' | 'replaced'

/** The store as it was at one moment, however long it is read. */
export interface Snapshot {
  /** Counts all plants, or those with this tag. It reads all of them. */
  countPlants(tag: string | undefined): Promise<number>
  /** Every plant that the query finds, in ascending order, a page at a time. One walk at a time. */
  walkPlants(query: PlantQuery): AsyncIterable<readonly VersionedPlant[]>
  listTokens(): Promise<TokenRecord[]>
  close(): Promise<void>
}

/** The content of a backup file. */
export interface FileSummary {
  readonly plants: number
  readonly tokens: number
}

/** How long an idempotency key is kept. */
export const keyLifetimeMs = 24 * 60 * 60 * 1000

/** A token as the store keeps it: its SHA-256, never the token. Times are ms since 1970. */
export interface TokenRecord {
  readonly id: string
  readonly hash: Buffer
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  readonly lastUsedAt: number | undefined
  /** The last characters of the token, to recognise a leaked one; unknown for an old token. */
  readonly lastFour: string | undefined
}

export interface TokenUse {
  readonly id: string
  readonly at: number
}

/**
 * Where plants and tokens are kept. Each method is one atomic step; a write resolves when it is on
 * disk. Expected outcomes are values. A `Failure` says that the store could not do it, and whether
 * it may have been done all the same.
 */
export interface Store {
  /** The id of the token that asks for a write is kept in the journal. */
  createPlant(plant: NewPlant, tokenId?: string): Promise<Version | 'exists'>
  /** Creates the plant once for this key. A repeat with the same plant gets the first outcome. */
  createPlantOnce(plant: NewPlant, key: CreateKey): Promise<CreatedOnce | 'exists' | 'key reused'>
  /** Returns the plant itself where it is at hand, and a promise where it has to be fetched. */
  getPlant(id: bigint): FoundPlant | Promise<FoundPlant>
  /** Plants in the order of their ids: up to the limit, or fewer when they are large. */
  listPlants(query: ListQuery): Promise<PlantPage>
  replacePlant(
    plant: StoredPlant,
    condition: Precondition,
    tokenId?: string,
  ): Promise<Replaced | 'condition failed'>
  deletePlant(
    id: bigint,
    condition: Precondition,
    tokenId?: string,
  ): Promise<'deleted' | 'absent' | 'condition failed'>
  /** Imports many plants. If it fails, some of them may be stored; a repeat finds them there. */
  importPlants(
    plants: readonly ImportedPlant[],
    onConflict: OnConflict,
    tokenId?: string,
  ): Promise<ImportOutcome[]>
  /** Opens a snapshot, which the caller closes. Few may be open at once, and fewer per token. */
  openSnapshot(tokenId?: string): Promise<Snapshot>
  /** Forgets some of the keys used before this time. Returns whether none are left. */
  forgetKeys(usedBefore: number): Promise<boolean>

  /**
   * Reads the changes after a position, oldest first: up to the limit, or fewer when they are
   * large. "gone" is a position that is no longer kept, or was never one of this store.
   */
  readJournal(after: Position | 'oldest', limit: number): Promise<JournalPage | 'gone' | 'off'>
  /** The position after every change that is there now. */
  journalEnd(): Promise<Position | 'off'>
  /**
   * Calls `onChange` after each commit: at once for those of this process, within 1 s for those of
   * others. Returns a function that ends it. The store looks for others only while it is watched.
   */
  watchJournal(onChange: () => void): () => void
  /** Deletes some of the changes from before this time, oldest first. Returns whether all are. */
  trimJournal(before: number): Promise<boolean>
  /** Measures some of the rows of the journal after a number, up to another. */
  measureJournal(after: number, upTo: number): Promise<Stretch>
  /**
   * Deletes the oldest changes, whatever their age: at least this many bytes, or as much as a step
   * may delete; nothing unless the oldest row has this number. Returns how many changes there were.
   */
  dropChanges(first: number, bytes: number): Promise<number>

  addToken(token: TokenRecord): Promise<void>
  /** Adds the token only to a store that holds no plant and no token yet. */
  addFirstToken(token: TokenRecord): Promise<'added' | 'not first'>
  findToken(hash: Buffer): Promise<TokenRecord | undefined>
  listTokens(): Promise<TokenRecord[]>
  revokeToken(id: string, at: number): Promise<'revoked' | 'revoked before' | 'unknown'>
  /** Deletes tokens, whatever their state. Returns how many there were. */
  deleteTokens(ids: readonly string[]): Promise<number>
  /** Records when tokens were last used. It is called late and in bulk, so it may lag. */
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>
  /** A number that changes with every revocation and deletion, in whichever process it was made. */
  tokenRevision(): Promise<bigint>

  readonly receivers: ReceiverStore
  /** Whether the queue of waiting writes is full, so that further ones would be refused. */
  isFull(): boolean
  /** Resolves when the store answers. */
  ping(): Promise<void>
  /** Measures the store for the metrics. It costs the same however many plants there are. */
  measure(): Promise<StoreMeasures>
  /** Finishes the writes that were accepted, then releases the store. */
  close(): Promise<void>
}

/** Tells the operator that a store went away or came back, or is a new one. */
export interface StoreEvents {
  onLost(reason: unknown): void
  onFound(): void
  /** Called before a store is made where there is none. An error that it throws prevents that. */
  onNew?(): void
  onMigrated?(migration: Migration): void
}

/** The upgrade of an older release's store: the steps of its schema before and now. */
export interface Migration {
  readonly from: number
  readonly to: number
  readonly durationMs: number
}

/** The store cannot be used as configured. The message is one line for the operator. */
export class UnusableStore extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options)
    this.name = 'UnusableStore'
  }
}
