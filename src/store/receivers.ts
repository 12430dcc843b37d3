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
export interface Progress extends Times {
  /** Every wanted change up to here is a delivery, or was one. */
  readonly position: string
  /** Changes after the position of which the same is true. Only release 1.1.0 adds any. */
  readonly ahead: readonly string[]
}

/** How the last attempts to reach a receiver ended. */
export interface Times {
  readonly lastSuccessAt: number | undefined
  readonly lastFailureAt: number | undefined
  readonly lastFailure: string | undefined
  /** When the first attempt failed after the last success. */
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

/** A change that a receiver has not taken yet. */
export interface Delivery extends Attempted {
  readonly type: WebhookType
  readonly at: number
  readonly plantId: bigint
  /** The size of its body. */
  readonly bytes: number
}

/** A change of the journal that a receiver wants. */
export interface NewDelivery extends Pick<Delivery, 'position' | 'type' | 'at' | 'plantId'> {
  /** The plant as JSON. */
  readonly body: string
}

/** A delivery that an operator adds. One that is there keeps its body. */
export interface AddedDelivery extends Omit<Delivery, 'bytes'> {
  readonly body: string | undefined
}

/** A stretch of the journal that was read for a receiver. */
export interface Taken extends Claim {
  readonly deliveries: readonly NewDelivery[]
  readonly position: string
  readonly ahead: readonly string[]
  /** Reports that changes are missing before it. */
  readonly gap: string | undefined
}

/** How deliveries to a receiver ended since the last save. */
export interface Saved extends Claim {
  readonly times: Times
  /** The positions of deliveries that have arrived. */
  readonly done: readonly string[]
  readonly failed: readonly Attempted[]
  /** Pauses the receiver with this reason. */
  readonly pause: string | undefined
}

/** The deliveries of a receiver that wait: how many, and the oldest of them. */
export interface Backlog {
  readonly id: string
  readonly changes: number
  readonly position: string
  readonly at: number
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
/** A receiver keeps this many failures, and bytes of them. Beyond, the oldest are forgotten. */
export const maxFailures = 10_000
export const maxFailureBytes = 16 * 1024 * 1024

/**
 * The part of the store for the receivers of webhooks and their deliveries. One process at a time
 * holds the lease of a receiver, and only that one can take and save deliveries.
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
  /**
   * Adds deliveries and moves the position past them, in one step for each receiver. A delivery
   * that is there stays as it is. Returns the ids whose lease is lost.
   */
  take(owner: string, taken: readonly Taken[]): Promise<string[]>
  /**
   * Deletes what has arrived and notes what has failed, in one step for each receiver. Returns the
   * ids whose lease is lost.
   */
  save(owner: string, saved: readonly Saved[]): Promise<string[]>

  /** Deliveries of a receiver that wait, or that were given up, in the order of the journal. */
  listDeliveries(id: string, state: 'waiting' | 'failed', limit?: number): Promise<Delivery[]>
  findBody(id: string, position: string): Promise<string | undefined>
  /** What waits for each receiver that has any. */
  listBacklogs(): Promise<Backlog[]>
  /** Makes every failure due again. Returns how many there were. */
  retryFailures(id: string, dueAt: number): Promise<number>
  /** Adds a delivery, or makes it due again if there is one. */
  addDelivery(id: string, delivery: AddedDelivery): Promise<void>
}
