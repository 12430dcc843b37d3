import { type Config, WrongConfig } from '../../config.ts'
import type { Receiver } from '../../store/receivers.ts'
import type { Store } from '../../store/store.ts'
import { requireExisting, toName } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'

/** Opens the store, finds a receiver in it, and uses both. */
export async function withReceiver<Value>(
  id: string,
  config: Config,
  use: (receiver: Receiver, store: Store) => Promise<Value>,
): Promise<Value> {
  requireExisting(config)
  return withStore(config, async (store) => {
    await requireJournal(store, config)
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
