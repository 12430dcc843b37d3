import type { Claim, Receiver, ReceiverStore } from '../store/receivers.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { SenderSettings } from './settings.ts'

/** The receivers whose lease this process holds. */
export interface Roster {
  list(): Iterable<Dispatcher>
  size(): number
  /** Takes over changes by operators, renews leases, and takes those that are free. */
  look(): Promise<void>
  /** Whether the leases are valid, as far as this process knows. */
  isHeld(): boolean
  /** Stops delivering to a receiver, which another process may have taken over. */
  drop(dispatcher: Dispatcher): void
}

export interface RosterOptions {
  readonly store: ReceiverStore
  readonly owner: string
  readonly settings: SenderSettings
  /** Starts delivering to a receiver. */
  readonly open: (receiver: Receiver, claim: Claim) => Promise<Dispatcher>
  /** Saves what was done. */
  readonly flush: () => Promise<void>
  /** Called when there may be other receivers than before. */
  readonly onChange: () => void
}

export function buildRoster(options: RosterOptions): Roster {
  const { store, owner, settings, open, flush, onChange } = options
  const dispatchers = new Map<string, Dispatcher>()
  const retiring = new Set<Dispatcher>()
  let revision: bigint | undefined
  let hasReceivers = false
  let claimedAt = -Infinity
  /** Whether to claim at once, and not only when the leases have to be renewed. */
  let hasNews = false

  async function look(): Promise<void> {
    const current = await store.revision()
    if (current !== revision) {
      hasReceivers = await refresh()
      hasNews = true
      revision = current
    }
    const isDue = hasNews || performance.now() - claimedAt >= settings.renewMs
    if (hasReceivers && isDue) await claim()
  }

  /** Takes over what operators have changed. Returns whether there are receivers at all. */
  async function refresh(): Promise<boolean> {
    const found = await listById()
    for (const dispatcher of [...dispatchers.values()]) {
      const receiver = found.get(dispatcher.id)
      if (receiver === undefined) drop(dispatcher)
      else if (receiver.state === 'paused' || dispatcher.isPaused()) void retire(dispatcher)
      else {
        const waiting = await store.listDeliveries(receiver.id, 'waiting')
        dispatcher.update(receiver.secrets, waiting)
      }
    }
    return found.size > 0
  }

  async function claim(): Promise<void> {
    // Counted from before the request: the store may count from any time after that.
    const askedAt = performance.now()
    hasNews = false
    const claims = await store.claim(owner, settings.leaseMs)
    claimedAt = askedAt
    const epochs = new Map(claims.map(({ id, epoch }) => [id, epoch]))
    for (const dispatcher of [...dispatchers.values()]) {
      const isMine = epochs.get(dispatcher.id) === dispatcher.epoch
      if (!isMine && !retiring.has(dispatcher)) drop(dispatcher)
    }
    const fresh = claims.filter(({ id }) => !dispatchers.has(id))
    const found = fresh.length > 0 ? await listById() : new Map<string, Receiver>()
    for (const one of fresh) {
      const receiver = found.get(one.id)
      if (receiver?.state === 'active') dispatchers.set(one.id, await open(receiver, one))
    }
    onChange()
  }

  async function listById(): Promise<Map<string, Receiver>> {
    return new Map((await store.list()).map((receiver) => [receiver.id, receiver]))
  }

  /** Ends the work for a receiver that is paused, and saves what was done. */
  async function retire(dispatcher: Dispatcher): Promise<void> {
    if (retiring.has(dispatcher)) return
    retiring.add(dispatcher)
    await dispatcher.halt()
    await flush()
    retiring.delete(dispatcher)
    drop(dispatcher)
  }

  function drop(dispatcher: Dispatcher): void {
    dispatcher.close()
    if (dispatchers.get(dispatcher.id) === dispatcher) dispatchers.delete(dispatcher.id)
    // It may have been resumed meanwhile.
    hasNews = true
    onChange()
  }

  return {
    list: () => dispatchers.values(),
    size: () => dispatchers.size,
    look,
    isHeld: () => performance.now() - claimedAt < settings.leaseMs,
    drop,
  }
}
