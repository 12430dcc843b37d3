/** A plant without its id. */
export interface Plant {
  readonly name: string
  readonly tag?: string | undefined
}

/** A plant to store. */
export interface NewPlant extends Plant {
  /** Any integer from -2^63 to 2^63-1. */
  readonly id: bigint
}

/** A plant with its id, as it is stored. */
export interface StoredPlant {
  readonly id: bigint
  readonly name: string
  /** Absent from a plant that was stored without a tag. */
  readonly tag?: string
}

/** A plant as it is stored, and the entity tag of this state. */
export interface PlantState extends StoredPlant {
  /** Names this state of the plant, for `ifMatch`: every change gives the plant a new one. */
  readonly etag: string
}

/** A plant as it was replaced or created. */
export interface ReplacedPlant extends PlantState {
  /** Whether there was no plant with this id before. */
  readonly created: boolean
}

/** A change of a plant, from the journal of the service. */
export interface PlantEvent {
  /** The place of the change in the journal. Pass the last one that you have seen as `after`. */
  readonly position: string
  readonly type: 'plant.created' | 'plant.replaced' | 'plant.deleted'
  /** When it happened: RFC 3339, UTC, with milliseconds. */
  readonly at: string
  /** The plant after the change, or as it was before it was deleted. */
  readonly plant: StoredPlant
}

/** A step of a mirror: apply each one, in order, and your copy is that of the service. */
export type MirrorChange =
  /** Empty the copy. All plants follow. */
  | { readonly type: 'reset' }
  /** A plant to keep. */
  | { readonly type: 'plant'; readonly plant: StoredPlant }
  /** From here on the copy is the store, as it was at this position. */
  | { readonly type: 'synced'; readonly position: string }
  | PlantEvent

/** The rule of an import for a plant whose id belongs to a plant of different content. */
export type OnConflict = 'fail' | 'skip' | 'replace'

/** A plant that an import did not take. */
export interface Refusal {
  /** Its place among the plants of the import, counted from 1. */
  readonly line: number
  readonly id?: bigint
  readonly error: number
  readonly message: string
}

/** The outcome of an import, as it is on disk. */
export interface ImportReport {
  readonly lines: number
  readonly stored: number
  /** Plants that were there already, with the same content. */
  readonly alreadyThere: number
  readonly replaced: number
  readonly skipped: number
  readonly conflicts: number
  readonly invalid: number
  /** The first 1,000 plants that were not taken. */
  readonly refused: readonly Refusal[]
  readonly refusedInAll: number
}

/** The option of every call. */
export interface CallOptions {
  /** Ends the call: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a create. */
export interface CreateOptions extends CallOptions {
  /** A key of your own. It makes a repeated call safe as well, for 24 hours. */
  readonly idempotencyKey?: string | undefined
}

/** The options of a delete. */
export interface DeleteOptions extends CallOptions {
  /** The `etag` of the state to change, or `*` for any. */
  readonly ifMatch?: string | undefined
}

/** The options of a replace. */
export interface ReplaceOptions extends DeleteOptions {
  /** `*` to replace nothing, or the `etag` of a state to keep. */
  readonly ifNoneMatch?: string | undefined
}

/** The options of a list. */
export interface ListOptions extends CallOptions {
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined
  /** Only plants whose name contains this text, in upper or lower case. */
  readonly name?: string | undefined
  /** By ascending id, which is the default, or descending. */
  readonly order?: 'asc' | 'desc' | undefined
  /** Only plants after this id: with a greater one, or with a smaller one in descending order. */
  readonly after?: bigint | undefined
  /** How many plants one request asks for: 1 to 1,000, which is the default. */
  readonly pageSize?: number | undefined
}

/** The options of an import. */
export interface ImportOptions extends CallOptions {
  /** `fail` keeps the stored plant and reports it, unless given; `skip` only keeps it. */
  readonly onConflict?: OnConflict | undefined
  /** Gets the report so far after each request: what is on disk, however the import ends. */
  readonly onProgress?: ((report: ImportReport) => void) | undefined
}

/** The options of following the changes. */
export interface EventsOptions extends CallOptions {
  /** A position, or `latest` for what happens from now on; unless given, the oldest kept. */
  readonly after?: string | undefined
}

/** The options of a mirror. */
export interface MirrorOptions extends CallOptions {
  /** The position up to which your copy is in sync; absent, the mirror starts with all plants. */
  readonly after?: string | undefined
}
