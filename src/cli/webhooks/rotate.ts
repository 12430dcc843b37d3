import type { Config } from '../../config.ts'
import { newSecret, rotationMs } from '../../webhooks/signature.ts'
import type { JsonFlags } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import { toTime } from '../tokens/view.ts'
import { unknownReceiver, withReceiver } from './receiver.ts'

/** Makes a new secret and prints it alone on standard output. The old one signs for a day more. */
export async function rotateSecret(
  id: string,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  await withReceiver(id, config, async ({ secrets }, store) => {
    const previousUntil = Date.now() + rotationMs
    const rotated = { current: newSecret(), previous: secrets.current, previousUntil }
    const set = (changed: typeof secrets) =>
      store.receivers.change(id, { kind: 'set secrets', secrets: changed })
    if ((await set(rotated)) === 'unknown') throw unknownReceiver(id, config)
    const secret = rotated.current
    const view = { id, secret, previousUntil: toTime(previousUntil) }
    try {
      await terminal.print(`${flags.json ? JSON.stringify(view, null, 2) : secret}\n`)
    } catch (error) {
      // Nobody has the new secret.
      await set(secrets)
      throw error
    }
    terminal.tell(
      `Receiver ${id} gets a second signature, with the old secret, until ${view.previousUntil}.`,
    )
  })
}
