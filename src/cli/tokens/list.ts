import type { Config } from '../../config.ts'
import type { JsonFlags } from '../flags.ts'
import { toPrintable } from '../printable.ts'
import { withExistingStore } from '../stores/with-store.ts'
import { toTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { type TokenView, toView } from './view.ts'

/** Lists every token: all that is known of it, never the token itself. */
export async function listTokens(
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withExistingStore(config, async (store) => {
    const views = (await store.listTokens()).map(toView)
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0)
      terminal.tell('There is no token yet. Make one: plant-store token create --name NAME')
    else await terminal.print(toText(views))
  })
}

function toText(views: readonly TokenView[]): string {
  const titles = ['ID', 'ENDS IN', 'NAME', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED']
  const rows = views.map((view) => [
    view.id,
    view.lastFour ?? '-',
    toPrintable(view.name),
    view.scopes.join(','),
    view.state,
    view.createdAt ?? '-',
    view.expiresAt ?? 'never',
    view.lastUsedAt ?? 'never',
  ])
  return `${toTable([titles, ...rows]).join('\n')}\n`
}
