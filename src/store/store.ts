import type { Order, Precondition } from '../contract/parameters.ts'
import type { NewPlant, StoredPlant } from '../contract/shapes.ts'
import type { Position } from '../journal/position.ts'
import type { JournalPage } from '../journal/row.ts'
import type { JournalUpkeep } from './journal-steps.ts'
import type { StoreMeasures } from './measures.ts'
import type { ReceiverStore } from './receivers.ts'
import type { TokenRecord, TokenStore } from './token-steps.ts'

export type { Position } from '../journal/position.ts'
export {
  type JournalEvent,
  type Journaling,
  type JournalPage,
  toPlant,
  toPlantId,
} from '../journal/row.ts'
export type * from './measures.ts'
export type { TokenRecord, TokenUse } from './token-steps.ts'

/** Identifies one state of one plant. It is random, so it never recurs, even after a restore. */
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
  readonly kind: 'replaced' | 'created'
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
  /** The last examined plant, if a bound ended the page and others may follow. */
  readonly next: bigint | undefined
}

/** A plant to import. A plant from another store keeps its version. */
export type ImportedPlant = NewPlant & { readonly version?: Version }

/** Whether an import keeps or replaces a plant that has the same id. */
export type OnConflict = 'keep' | 'replace'

/** "already there": same content. "conflict": other content, which was kept. */
export type ImportOutcome = 'stored' | 'already there' | 'conflict' | 'replaced'

/** The store as of one moment, however long it is read. */
export interface Snapshot {
  /** Counts all plants, or those with this tag, by reading them all. */
  countPlants(tag: string | undefined): Promise<number>
  /** Pages of all matching plants, in ascending order. Only one walk may run at a time. */
  walkPlants(query: PlantQuery): AsyncIterable<readonly VersionedPlant[]>
  listTokens(): Promise<TokenRecord[]>
  close(): Promise<void>
}

/** The content of a backup file. */
export interface FileSummary {
  readonly plants: number
  readonly tokens: number
}

/**
 * Stores plants and tokens. Each method is atomic, and a write resolves once it is on disk, except
 * `take` and `save` of `receivers`: they can be repeated, and resolve before that. Expected
 * outcomes are values. A `Failure` says why the store could not do it, and whether it may have been
 * done nevertheless.
 */
export interface Store extends TokenStore, JournalUpkeep {
  /** The journal records the id of the token that asked for a write. */
  createPlant(plant: NewPlant, tokenId?: string): Promise<Version | 'exists'>
  /** Creates the plant once per key. A repeat with the same plant returns the first outcome. */
  createPlantOnce(plant: NewPlant, key: CreateKey): Promise<CreatedOnce | 'exists' | 'key reused'>
  /** Returns the plant directly if the engine is local, or a promise if it must be fetched. */
  getPlant(id: bigint): FoundPlant | Promise<FoundPlant>
  /** Plants by id: up to the limit, or fewer if they are large. */
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
  /** Imports plants, all or none. A repeat reports those that are stored as already there. */
  importPlants(
    plants: readonly ImportedPlant[],
    onConflict: OnConflict,
    tokenId?: string,
  ): Promise<ImportOutcome[]>
  /** Opens a snapshot, which the caller must close. Their number is limited (`maxSnapshots`). */
  openSnapshot(tokenId?: string): Promise<Snapshot>

  /**
   * Reads the changes after a position, oldest first: up to the limit, or fewer if they are large.
   * "gone": the position was trimmed, or belongs to another store.
   */
  readJournal(after: Position | 'oldest', limit: number): Promise<JournalPage | 'gone' | 'off'>
  /** The position after every change that was acknowledged before. Fails while none is known. */
  journalEnd(): Promise<Position | 'off'>
  /** The position of the newest change, to measure by: earlier changes may still appear. */
  newestPosition(): Promise<Position | 'off'>
  /**
   * Calls `onChange` after each commit: at once for commits of this process, within 1 s for those
   * of others. Returns a function that stops it. The store polls only while it is watched.
   */
  watchJournal(onChange: () => void): () => void
  /** Differs after a failover, which may have undone changes. SQLite has none, and omits it. */
  journalSession?(): unknown

  readonly receivers: ReceiverStore
  /** Whether the write queue is full, so that further writes would be refused. */
  isFull(): boolean
  /** Resolves when the store answers. */
  ping(): Promise<void>
  /** Measures the store for the metrics, at a cost that does not depend on the number of plants. */
  measure(): Promise<StoreMeasures>
  /** Finishes the accepted writes, then closes the store. */
  close(): Promise<void>
}

/** Events to report to the operator. */
export interface StoreEvents {
  onLost(reason: unknown): void
  onFound(): void
  /** Called before a new store is created. Throwing prevents it. */
  onNew?(): void
  onMigrated?(migration: Migration): void
}

/** The upgrade of a store of an older release: its schema version before and after. */
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

/** No server of the store can be used now. Later one may be. */
export class UnreachableStore extends UnusableStore {}
