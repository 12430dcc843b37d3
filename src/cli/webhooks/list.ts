import type { Config } from '../../config.ts'
import type { JsonFlags } from '../flags.ts'
import { toPrintable } from '../printable.ts'
import { toTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { countBehind, maxCounted } from './behind.ts'
import { withReceivers } from './receiver.ts'
import { type ReceiverView, toView } from './view.ts'

/** The width of an ordinary terminal, and of the table. */
const columns = 100

/** Lists every receiver: all that is known of it, never its secrets. */
export async function listReceivers(
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withReceivers(config, async (store) => {
    const now = Date.now()
    const views: ReceiverView[] = []
    for (const receiver of await store.receivers.list()) {
      views.push(toView(receiver, await countBehind(store, receiver, now)))
    }
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0)
      terminal.tell('There is no receiver yet. Add one: plant-store webhook add URL')
    else await terminal.print(toText(views))
  })
}

/** A table, and below each row what is too long for one. */
function toText(views: readonly ReceiverView[]): string {
  const titles = ['ID', 'STATE', 'BEHIND', 'LAST SUCCESS', 'LAST FAILURE']
  const rows = views.map((view) => [
    view.id,
    view.state,
    `${toCount(view.behind.changes)} (${view.behind.seconds} s)`,
    view.lastSuccessAt ?? 'never',
    view.lastFailureAt ?? 'never',
  ])
  const [title = '', ...lines] = toTable([titles, ...rows])
  const blocks = views.map((view, index) => [lines[index] ?? '', ...toDetails(view)])
  return `${[title, ...blocks.flat()].map(shorten).join('\n')}\n`
}

function toDetails({ url, types, position, reason, lastFailure }: ReceiverView): string[] {
  return [
    `  url       ${url}`,
    `  types     ${types.join(', ')}`,
    `  position  ${position}`,
    ...(reason === null ? [] : [`  reason    ${reason}`]),
    ...(lastFailure === null ? [] : [`  failure   ${lastFailure}`]),
  ]
}

function toCount(changes: number): string {
  return changes < maxCounted ? String(changes) : `${maxCounted}+`
}

function shorten(line: string): string {
  const shown = toPrintable(line)
  return shown.length <= columns ? shown : `${shown.slice(0, columns - 1)}…`
}
