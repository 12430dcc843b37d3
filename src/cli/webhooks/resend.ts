import { type Config, WrongConfig } from '../../config.ts'
import { findEvent } from '../../journal/find-event.ts'
import { type Store, toPlant } from '../../store/store.ts'
import type { JsonFlags } from '../flags.ts'
import { toCount } from '../progress.ts'
import type { Terminal } from '../terminal.ts'
import { withReceiver } from './receiver.ts'

/** Sends every failure again, or one change of the journal. */
export async function resend(
  id: string,
  position: string | undefined,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withReceiver(id, config, async (receiver, store) => {
    const resent = await (position === undefined
      ? store.receivers.retryFailures(id, Date.now())
      : resendOne(id, position, store))
    if (flags.json) await terminal.print(`${JSON.stringify({ resent })}\n`)
    else {
      const when = receiver.state === 'paused' ? 'once it is resumed' : 'now'
      terminal.tell(`Receiver ${id} gets ${toCount(resent, 'changes')} again ${when}.`)
    }
  })
}

async function resendOne(id: string, position: string, store: Store): Promise<number> {
  const failures = await store.receivers.listDeliveries(id, 'failed')
  const failure = failures.find((one) => one.position === position)
  const found = failure ?? (await findEvent(store, position))
  if (found === undefined) {
    throw new WrongConfig([
      `The change at ${position} is no longer kept, or is none of this store. Nothing was sent.`,
    ])
  }
  const { type, at } = found
  const [plantId, body] =
    'plantJson' in found ? [toPlant(found).id, found.plantJson] : [found.plantId, undefined]
  const first = { attempts: 0, dueAt: Date.now(), lastStatus: undefined, lastError: undefined }
  await store.receivers.addDelivery(id, { position, type, at, plantId, body, ...first })
  return 1
}
