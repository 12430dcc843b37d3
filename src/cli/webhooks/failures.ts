import type { Config } from '../../config.ts'
import type { Delivery, Receiver } from '../../store/receivers.ts'
import type { Store } from '../../store/store.ts'
import type { JsonFlags } from '../flags.ts'
import { toCount } from '../progress.ts'
import { toTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { toTime } from '../tokens/view.ts'
import { countBehind } from './behind.ts'
import { withReceiver } from './receiver.ts'

/** Lists the changes that a receiver did not take, and why. */
export async function listFailures(
  id: string,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withReceiver(id, config, async (receiver, store) => {
    const views = (await store.receivers.listDeliveries(id, 'failed')).map(toView)
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0) terminal.tell(await describeRest(receiver, store))
    else await terminal.print(toText(views))
  })
}

/** Says what a receiver without failures has yet to get. */
async function describeRest(receiver: Receiver, store: Store): Promise<string> {
  const { id } = receiver
  const { changes } = await countBehind(store, receiver, Date.now())
  if (changes === 0) return `Receiver ${id} has taken every change so far.`
  const waiting = await store.receivers.listDeliveries(id, 'waiting')
  const retried = waiting.filter(({ attempts }) => attempts > 0).length
  const still = `${toCount(changes, 'changes')} ${changes === 1 ? 'is' : 'are'} still to be delivered`
  const retries = retried === 0 ? '' : `; ${retried} ${retried === 1 ? 'is' : 'are'} being retried`
  return `Receiver ${id} has no failures. ${still}${retries}.`
}

function toView({ position, type, at, attempts, lastStatus, lastError }: Delivery) {
  return {
    position,
    type,
    at: toTime(at),
    attempts,
    lastStatus: lastStatus ?? null,
    lastError: lastError ?? null,
  }
}

function toText(views: readonly ReturnType<typeof toView>[]): string {
  const titles = ['POSITION', 'TYPE', 'AT', 'ATTEMPTS', 'LAST ERROR']
  const rows = views.map((view) => [
    view.position,
    view.type,
    view.at ?? '-',
    String(view.attempts),
    view.lastError ?? '-',
  ])
  return `${toTable([titles, ...rows]).join('\n')}\n`
}
