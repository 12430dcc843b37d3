import type { Config } from '../../config.ts'
import type { ReceiverStore } from '../../store/receivers.ts'
import type { JsonFlags } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import { unknownReceiver, withReceiver } from './receiver.ts'

/** Stops sending until the receiver is resumed. */
export const pauseReceiver = buildChange('paused', (receivers, id) =>
  receivers.change(id, { kind: 'pause', reason: 'paused by the operator' }),
)

/** Goes on where a paused receiver stopped. */
export const resumeReceiver = buildChange('active', (receivers, id) =>
  receivers.change(id, { kind: 'resume' }),
)

/** Forgets a receiver and what it has yet to get. */
export const removeReceiver = buildChange('removed', (receivers, id) => receivers.remove(id))

/** A command that brings a receiver into a state. */
function buildChange(
  state: 'active' | 'paused' | 'removed',
  change: (receivers: ReceiverStore, id: string) => Promise<'changed' | 'removed' | 'unknown'>,
) {
  return (id: string, flags: JsonFlags, config: Config, terminal: Terminal): Promise<void> =>
    withReceiver(id, config, async (_, { receivers }) => {
      if ((await change(receivers, id)) === 'unknown') throw unknownReceiver(id, config)
      if (flags.json) await terminal.print(`${JSON.stringify({ id, state })}\n`)
      else terminal.tell(`Receiver ${id} is ${state}.`)
    })
}
