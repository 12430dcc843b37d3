import type { Config } from '../../config.ts'
import type { Receiver } from '../../store/receivers.ts'
import type { Store } from '../../store/store.ts'
import type { Terminal } from '../terminal.ts'
import { unknownReceiver, withReceiver } from './receiver.ts'

type Flags = { readonly json?: boolean }

/** Stops sending until the receiver is resumed. */
export function pauseReceiver(id: string, flags: Flags, config: Config, terminal: Terminal) {
  const change = { kind: 'pause', reason: 'paused by the operator' } as const
  return run(id, flags, config, terminal, 'paused', (_, store) =>
    store.receivers.change(id, change),
  )
}

/** Goes on where a paused receiver stopped. */
export function resumeReceiver(id: string, flags: Flags, config: Config, terminal: Terminal) {
  return run(id, flags, config, terminal, 'active', (_, store) =>
    store.receivers.change(id, { kind: 'resume' }),
  )
}

/** Forgets a receiver and what it has yet to get. */
export function removeReceiver(id: string, flags: Flags, config: Config, terminal: Terminal) {
  return run(id, flags, config, terminal, 'removed', (_, store) => store.receivers.remove(id))
}

async function run(
  id: string,
  flags: Flags,
  config: Config,
  terminal: Terminal,
  state: 'active' | 'paused' | 'removed',
  change: (receiver: Receiver, store: Store) => Promise<'changed' | 'removed' | 'unknown'>,
): Promise<void> {
  await withReceiver(id, config, async (receiver, store) => {
    if ((await change(receiver, store)) === 'unknown') throw unknownReceiver(id, config)
    if (flags.json) await terminal.print(`${JSON.stringify({ id, state })}\n`)
    else terminal.tell(`Receiver ${id} is ${state}.`)
  })
}
