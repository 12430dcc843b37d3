import type { Claim, Receiver, ReceiverStore } from '../store/receivers.ts'
import type { SenderSettings } from './settings.ts'
import type { Worker } from './worker.ts'

/** The receivers whose lease this process holds. */
export interface Leases {
  readonly workers: ReadonlyMap<string, Worker>
  /** Applies changes by operators, renews the leases, and claims those that are free. */
  poll(): Promise<void>
  /** Whether the leases are valid, by both clocks of this process. */
  isHeld(): boolean
  /** Stops delivering to a receiver, which another process may have taken over. */
  drop(worker: Worker): void
  /** Ends the work for a receiver, and begins again with what the store has. */
  reopen(worker: Worker): void
}

export interface LeasesOptions {
  readonly store: ReceiverStore
  readonly owner: string
  readonly settings: SenderSettings
  /** Starts delivering to a receiver. */
  readonly open: (receiver: Receiver, claim: Claim) => Promise<Worker>
  /** Called when the receivers may have changed. */
  readonly onChange: () => void
}

export function buildLeases(options: LeasesOptions): Leases {
  const { store, owner, settings, open, onChange } = options
  const workers = new Map<string, Worker>()
  let revision: bigint | undefined
  let hasReceivers = false
  let claimedAt = { monotonic: -Infinity, wall: -Infinity }
  /** Whether to claim at the next poll, instead of at the next renewal. */
  let hasNews = false

  async function poll(): Promise<void> {
    const current = await store.revision()
    if (current !== revision) {
      hasReceivers = await refresh()
      hasNews = true
      revision = current
    }
    const isDue = hasNews || leaseAgeMs() >= settings.renewMs
    if (hasReceivers && isDue) await claim()
  }

  /**
   * By the clock that has moved further. The monotonic clock stands still while a virtual machine
   * is suspended; the wall clock may be set back, which must not extend a lease.
   */
  function leaseAgeMs(): number {
    return Math.max(performance.now() - claimedAt.monotonic, Date.now() - claimedAt.wall)
  }

  /** Applies what operators have changed. Returns whether there are any receivers. */
  async function refresh(): Promise<boolean> {
    const found = await listById()
    for (const worker of [...workers.values()]) {
      const receiver = found.get(worker.id)
      if (receiver === undefined) drop(worker)
      else if (receiver.state === 'paused' || worker.isPaused()) void retire(worker, 'paused')
      else worker.update(receiver.secrets)
    }
    return found.size > 0
  }

  async function claim(): Promise<void> {
    // Taken before the request, because in the store the lease may begin at any time after it.
    const askedAt = { monotonic: performance.now(), wall: Date.now() }
    hasNews = false
    const claims = await store.claim(owner, settings.leaseMs)
    claimedAt = askedAt
    const epochs = new Map(claims.map(({ id, epoch }) => [id, epoch]))
    for (const worker of [...workers.values()]) {
      if (epochs.get(worker.id) !== worker.epoch) drop(worker)
    }
    const fresh = claims.filter(({ id }) => !workers.has(id))
    const found = fresh.length > 0 ? await listById() : new Map<string, Receiver>()
    for (const one of fresh) {
      const receiver = found.get(one.id)
      if (receiver?.state === 'active') workers.set(one.id, await open(receiver, one))
    }
    onChange()
  }

  async function listById(): Promise<Map<string, Receiver>> {
    return new Map((await store.list()).map((receiver) => [receiver.id, receiver]))
  }

  /** Ends the work for a receiver, and saves its outcomes. */
  async function retire(worker: Worker, reason: 'paused' | 'closing'): Promise<void> {
    await worker.halt(reason)
    await worker.finish()
    drop(worker)
  }

  function drop(worker: Worker): void {
    worker.close()
    if (workers.get(worker.id) === worker) workers.delete(worker.id)
    // It may have been resumed meanwhile.
    hasNews = true
    onChange()
  }

  return {
    workers,
    poll,
    isHeld: () => leaseAgeMs() < settings.leaseMs,
    drop,
    reopen(worker) {
      // If the lease is lost, the next claim says so, and nothing waits for requests in flight.
      hasNews = true
      void retire(worker, 'closing')
    },
  }
}
