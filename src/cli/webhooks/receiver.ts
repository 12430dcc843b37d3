import { type Config, WrongConfig } from '../../config.ts'
import type { Receiver } from '../../store/receivers.ts'
import type { Store } from '../../store/store.ts'
import { toName } from '../stores/location.ts'
import { withExistingStore } from '../stores/with-store.ts'

/** Opens a store that exists and writes a journal, and uses it. */
export function withReceivers<Value>(
  config: Config,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  return withExistingStore(config, async (store) => {
    await requireJournal(store, config)
    return use(store)
  })
}

/** Opens the store, finds a receiver in it, and uses both. */
export async function withReceiver<Value>(
  id: string,
  config: Config,
  use: (receiver: Receiver, store: Store) => Promise<Value>,
): Promise<Value> {
  return withReceivers(config, async (store) => {
    const receiver = (await store.receivers.list()).find((one) => one.id === id)
    if (receiver === undefined) throw unknownReceiver(id, config)
    return use(receiver, store)
  })
}

export function unknownReceiver(id: string, { storeLocation }: Config): WrongConfig {
  return new WrongConfig([
    `No receiver in ${toName(storeLocation)} has the id ${id}. See: plant-store webhook list`,
  ])
}

/** Refuses a store that writes no journal. Returns the end of the journal. */
export async function requireJournal(store: Store, config: Config): Promise<string> {
  const end = config.journalKeepMs === 'off' ? 'off' : await store.journalEnd()
  if (end !== 'off') return end
  throw new WrongConfig([
    `Webhooks are off, because JOURNAL_KEEP is off. Set it to a time such as 7d and restart the service.`,
  ])
}
