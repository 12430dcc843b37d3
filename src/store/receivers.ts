import type { StoredPlant } from '../contract/shapes.ts'
import type { WebhookType } from '../contract/webhooks.ts'

/** A receiver of webhooks. Times are ms since 1970. */
export interface Receiver {
  readonly id: string
  readonly url: string
  readonly types: readonly WebhookType[]
  readonly secrets: Secrets
  readonly state: 'active' | 'paused'
  /** Why it is paused, or that it missed changes. */
  readonly reason: string | undefined
  readonly createdAt: number
  readonly progress: Progress
}

/** The secret that signs, and the one before it, which signs as well until its end. */
export interface Secrets {
  readonly current: string
  readonly previous: string | undefined
  readonly previousUntil: number | undefined
}

/** How far a receiver is. */
export interface Progress {
  /** Every wanted change up to here is delivered, or kept as a `Delivery`. */
  readonly position: string
  /** Changes after the position of which the same is true. */
  readonly ahead: readonly string[]
  readonly lastSuccessAt: number | undefined
  readonly lastFailureAt: number | undefined
  readonly lastFailure: string | undefined
  /** When the first attempt failed after the last success. */
  readonly failingSince: number | undefined
}

/** A change that a receiver has not taken yet: it is tried again, or was given up. */
export interface Delivery {
  readonly position: string
  readonly type: WebhookType
  readonly at: number
  readonly plantId: bigint
  readonly attempts: number
  /** When the next attempt is due; undefined for a failure, which waits for the operator. */
  readonly dueAt: number | undefined
  readonly lastStatus: number | undefined
  readonly lastError: string | undefined
}

/** A delivery to keep. The plant is stored with the first version of it. */
export interface KeptDelivery extends Delivery {
  readonly plant: StoredPlant | undefined
}

/** The work of a sender for one receiver since the last save. */
export interface SavedProgress {
  readonly id: string
  readonly epoch: number
  readonly progress: Progress
  readonly kept: readonly KeptDelivery[]
  /** The positions of deliveries that have arrived. */
  readonly done: readonly string[]
  /** Pauses the receiver with this reason, or reports a gap without pausing it. */
  readonly pause: string | undefined
  readonly gap: string | undefined
}

/** The right to deliver to a receiver. Another holder gets a higher epoch. */
export interface Claim {
  readonly id: string
  readonly epoch: number
}

/** A change that the operator makes to a receiver. */
export type ReceiverChange =
  | { readonly kind: 'pause'; readonly reason: string }
  | { readonly kind: 'resume' }
  | { readonly kind: 'set secrets'; readonly secrets: Secrets }

export const maxReceivers = 100
/** A receiver keeps this many failures. Beyond that, the oldest are forgotten. */
export const maxFailures = 10_000

/**
 * The part of the store for the receivers of webhooks and their progress. One process at a time
 * holds the lease of a receiver, and only that one can save its progress.
 */
export interface ReceiverStore {
  add(receiver: Receiver): Promise<'added' | 'too many'>
  list(): Promise<Receiver[]>
  change(id: string, change: ReceiverChange): Promise<'changed' | 'unknown'>
  remove(id: string): Promise<'removed' | 'unknown'>
  /** A number that changes with every change by an operator, in whichever process it is made. */
  revision(): Promise<bigint>

  /**
   * Renews the leases of this owner, and takes those that are free or have run out.
   * Returns all that it holds now.
   */
  claim(owner: string, leaseMs: number): Promise<Claim[]>
  release(owner: string): Promise<void>
  /** Saves progress, in one step for each receiver. Returns the ids whose lease is lost. */
  save(owner: string, saved: readonly SavedProgress[]): Promise<string[]>

  /** The deliveries of a receiver, those that wait or those that were given up, oldest first. */
  listDeliveries(id: string, state: 'waiting' | 'failed'): Promise<Delivery[]>
  findPlant(id: string, position: string): Promise<StoredPlant | undefined>
  /** Makes every failure due again. Returns how many there were. */
  retryFailures(id: string, dueAt: number): Promise<number>
  /** Adds a delivery, or makes it due again if there is one. */
  addDelivery(id: string, delivery: KeptDelivery): Promise<void>
}
