import { type Config, WrongConfig } from '../../config.ts'
import { type WebhookType, webhookTypes } from '../../contract/webhooks.ts'
import { maxReceivers, type Receiver } from '../../store/receivers.ts'
import type { Store } from '../../store/store.ts'
import { findUrlMistake, newReceiver } from '../../webhooks/new-receiver.ts'
import { describePlainHttp } from '../plain-http.ts'
import { requireExistingOrNamed, toName } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'
import { requireJournal } from './receiver.ts'
import { toView } from './view.ts'

export interface AddFlags {
  readonly types?: string
  readonly from?: string
  readonly create?: boolean
  readonly json?: boolean
}

/** Adds a receiver and prints its secret alone on standard output. */
export async function addReceiver(
  url: string,
  flags: AddFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const types = toTypes(url, flags)
  requireExistingOrNamed(config, flags)
  await withStore(config, async (store) => {
    const end = await requireJournal(store, config)
    const position = await toBegin(store, flags.from, end)
    const receiver = newReceiver({ url, types, position })
    if ((await store.receivers.add(receiver)) === 'too many') {
      throw new WrongConfig([
        `There are ${maxReceivers} receivers already, which is the most. Remove one: plant-store webhook remove ID`,
      ])
    }
    await printSecret(receiver, store, flags, terminal)
    terminal.tell(
      `Receiver ${receiver.id} gets ${types.join(', ')}, signed with this secret, which is shown only once. Store: ${toName(config.storeLocation)}`,
    )
    const warning = describePlainHttp('the changes', url)
    if (warning !== undefined) terminal.tell(warning)
  })
}

/** Prints the secret. A receiver whose secret cannot be printed is removed: nobody could verify. */
async function printSecret(
  receiver: Receiver,
  store: Store,
  flags: AddFlags,
  terminal: Terminal,
): Promise<void> {
  const secret = receiver.secrets.current
  const view = { secret, ...toView(receiver, { changes: 0, seconds: 0 }) }
  try {
    await terminal.print(`${flags.json ? JSON.stringify(view, null, 2) : secret}\n`)
  } catch (error) {
    await store.receivers.remove(receiver.id)
    throw error
  }
}

/** Checks the arguments, and returns the types. */
function toTypes(url: string, { types }: AddFlags): WebhookType[] {
  const mistakes: string[] = []
  const mistake = findUrlMistake(url)
  // The URL itself is not repeated: it may hold a secret.
  if (mistake !== undefined) mistakes.push(`The URL of the receiver ${mistake}.`)
  const wanted = types?.split(',').map((part) => part.trim()) ?? ['plant.created']
  if (!wanted.every((part) => (webhookTypes as readonly string[]).includes(part))) {
    mistakes.push(`--types must be one or more of ${webhookTypes.join(', ')}, separated by commas.`)
  }
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return webhookTypes.filter((known) => wanted.includes(known))
}

/** The position after which a receiver begins. */
async function toBegin(store: Store, from = 'latest', end: string): Promise<string> {
  if (from === 'latest') return end
  if (from !== 'oldest' && (await store.readJournal(from, 1)) !== 'gone') return from
  throw new WrongConfig([
    '--from must be latest, or a position of this store that is still kept (see GET /events).',
  ])
}
