import { type Config, WrongConfig } from '../../config.ts'
import { requireExisting } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'

/** Revokes a token. Every process that serves the store refuses it within a second. */
export async function revokeToken(
  id: string,
  flags: { readonly json?: boolean },
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  await withStore(config, async (store) => {
    const outcome = await store.revokeToken(id, Date.now())
    if (outcome === 'unknown') {
      throw new WrongConfig([`No token has the id ${id}. See: plant-store token list`])
    }
    if (flags.json) await terminal.print(`${JSON.stringify({ id, outcome })}\n`)
    else terminal.tell(`Token ${id} was ${outcome}.`)
  })
}
