import { randomUUID } from 'node:crypto'
import type { Config } from '../../config.ts'
import { testEvent } from '../../contract/webhooks.ts'
import { deliver } from '../../webhooks/delivery.ts'
import { defaultSettings } from '../../webhooks/settings.ts'
import { openTransport } from '../../webhooks/transport.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import type { JsonFlags } from '../flags.ts'
import type { Terminal } from '../terminal.ts'
import { withReceiver } from './receiver.ts'

const sample = '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}'

/** Sends a signed sample to a receiver, and prints what came back. */
export async function testReceiver(
  id: string,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const { url, secrets } = await withReceiver(id, config, async (receiver) => receiver)
  const { timeoutMs } = defaultSettings
  const transport = openTransport({ url, connections: 1, timeoutMs })
  const startedAt = performance.now()
  const message = { id: `test-${randomUUID()}`, event: testEvent, body: sample }
  const { status = null, error = null } = await deliver(transport, secrets, message, () => true)
  transport.close()
  const ms = Math.round(performance.now() - startedAt)
  if (flags.json) await terminal.print(`${JSON.stringify({ id, status, ms, error })}\n`)
  else await terminal.print(`${status ?? 'no status'} after ${ms} ms\n`)
  if (error !== null) {
    throw new CommandFailed(exitCodes.inputOutput, `Receiver ${id} did not take it: ${error}.`)
  }
}
