import type { Config } from '../../config.ts'
import type { JsonFlags } from '../flags.ts'
import { toCount } from '../progress.ts'
import { toName } from '../stores/location.ts'
import { withExistingStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'
import { toView } from './view.ts'

/** How many tokens one step deletes. */
const stepTokens = 1_000

/** Forgets the tokens that are expired or revoked, which no request can use. */
export async function pruneTokens(
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withExistingStore(config, async (store) => {
    const ids = (await store.listTokens())
      .map(toView)
      .filter(({ state }) => state !== 'active')
      .map(({ id }) => id)
    let pruned = 0
    for (let start = 0; start < ids.length; start += stepTokens) {
      pruned += await store.deleteTokens(ids.slice(start, start + stepTokens))
    }
    if (flags.json) await terminal.print(`${JSON.stringify({ pruned })}\n`)
    else terminal.tell(`Forgot ${toCount(pruned, 'tokens')} of ${toName(config.storeLocation)}.`)
  })
}
