import type { Config } from '../../config.ts'
import type { Delivery } from '../../store/receivers.ts'
import type { JsonFlags } from '../flags.ts'
import { toTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { toTime } from '../tokens/view.ts'
import { withReceiver } from './receiver.ts'

/** Lists the changes that a receiver did not take, and why. */
export async function listFailures(
  id: string,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withReceiver(id, config, async (_, store) => {
    const views = (await store.receivers.listDeliveries(id, 'failed')).map(toView)
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0) terminal.tell(`Receiver ${id} has taken every change so far.`)
    else await terminal.print(toText(views))
  })
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
