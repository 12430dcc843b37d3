import type { WebhookType } from '../contract/webhooks.ts'

/** A receiver of webhooks. Times are ms since 1970. */
export interface Receiver {
  readonly id: string
  readonly url: string
  readonly types: readonly WebhookType[]
  readonly secrets: Secrets
  readonly state: 'active' | 'paused'
  /** Why it is paused, or a note that it missed changes. */
  readonly reason: string | undefined
  readonly createdAt: number
  readonly progress: Progress
}

/** The current secret, and the previous one, which also signs until it expires. */
export interface Secrets {
  readonly current: string
  readonly previous: string | undefined
  readonly previousUntil: number | undefined
}

/** How far the journal was read for a receiver. */
export interface Progress extends Times {
  /** Every wanted change up to here is or was a delivery. */
  readonly position: string
  /** Later changes of which the same is true. Only release 1.1.0 adds any. */
  readonly ahead: readonly string[]
}

/** The last success and failures of a receiver. */
export interface Times {
  readonly lastSuccessAt: number | undefined
  readonly lastFailureAt: number | undefined
  readonly lastFailure: string | undefined
  /** When the first attempt after the last success failed. */
  readonly failingSince: number | undefined
}

/** The state of a delivery after its last attempt. */
export interface Attempted {
  readonly position: string
  readonly attempts: number
  /** When the next attempt is due; undefined for a failure, which waits for the operator. */
  readonly dueAt: number | undefined
  readonly lastStatus: number | undefined
  readonly lastError: string | undefined
}

/** A change that a receiver has not acknowledged yet. */
export interface Delivery extends Attempted {
  readonly type: WebhookType
  readonly at: number
  readonly plantId: bigint
  /** The plant as JSON. */
  readonly body: string
}

/** A change of the journal that a receiver wants. */
export type NewDelivery = Pick<Delivery, 'position' | 'type' | 'at' | 'plantId' | 'body'>

/** The deliveries from a page of the journal that was read for a receiver. */
export interface Taken extends Claim {
  readonly deliveries: readonly NewDelivery[]
  /** The position from which it moves. */
  readonly before: string
  readonly position: string
  readonly ahead: readonly string[]
  /** A note that changes before it are missing. */
  readonly gap: string | undefined
}

/** The outcomes of deliveries to a receiver since the last save. */
export interface Saved extends Claim {
  readonly times: Times
  /** The positions of deliveries that have arrived. */
  readonly done: readonly string[]
  readonly failed: readonly Attempted[]
  /** Pauses the receiver with this reason. */
  readonly pause: string | undefined
}

/** The waiting deliveries of a receiver: how many, and the oldest. */
export interface Backlog {
  readonly id: string
  readonly changes: number
  readonly position: string
  readonly at: number
}

/** The lease of a receiver. Each new holder gets a higher epoch. */
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
/** How many failures are kept for a receiver. The oldest are dropped first. */
export const maxFailures = 10_000

/**
 * Receivers of webhooks and their deliveries. One process at a time holds the lease of a receiver,
 * and only that process can take and save its deliveries.
 */
export interface ReceiverStore {
  add(receiver: Receiver): Promise<'added' | 'too many'>
  list(): Promise<Receiver[]>
  change(id: string, change: ReceiverChange): Promise<'changed' | 'unknown'>
  remove(id: string): Promise<'removed' | 'unknown'>
  /** A number that changes whenever an operator changes a receiver, in any process. */
  revision(): Promise<bigint>

  /**
   * Renews the leases of this owner, also while a receiver is paused: requests may still be in
   * flight. Acquires those of active receivers that are free or expired. Returns all leases that it
   * now holds.
   */
  claim(owner: string, leaseMs: number): Promise<Claim[]>
  release(owner: string): Promise<void>
  /**
   * Adds deliveries and moves the position past them. Existing deliveries stay as they are. Returns
   * false, and changes nothing, if the lease is not held, or if the position is not `before`: then
   * an earlier take, whose outcome was unknown, has moved it. Not synced, like `save`: a power cut
   * may undo it, which only repeats deliveries.
   */
  take(owner: string, taken: Taken): Promise<boolean>
  /** Deletes delivered changes and records failures. Returns whether the lease is held. */
  save(owner: string, saved: Saved): Promise<boolean>

  /** The waiting or the failed deliveries of a receiver, in journal order. */
  listDeliveries(id: string, state: 'waiting' | 'failed', limit?: number): Promise<Delivery[]>
  /** The backlog of each receiver that has one. */
  listBacklogs(): Promise<Backlog[]>
  /** Makes every failure due again, or the one at a position. Returns how many there were. */
  retryFailures(id: string, dueAt: number, position?: string): Promise<number>
  /** Adds a delivery. One at the same position gets its state and keeps its body. */
  addDelivery(id: string, delivery: Delivery): Promise<'added' | 'unknown'>
}
