import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { toStoreLocation } from '../../../src/store/open.ts'
import type { SenderSettings } from '../../../src/webhooks/settings.ts'
import { killAfterTest, programEnv } from '../../support/child.ts'
import { waitUntil } from '../../support/wait.ts'
import type { Command, Notice } from './sender-program.ts'

const program = fileURLToPath(new URL('sender-program.ts', import.meta.url))

/** A sender in a process of its own. */
export interface SenderProcess {
  tell(command: Command): void
  /** Resolves when the process says this. */
  hear(notice: Notice): Promise<void>
  /** Ends the process. */
  end(signal: NodeJS.Signals): Promise<void>
}

/** Starts a sender as a process. It is killed with the test. */
export async function startSender(
  url: string,
  settings: Partial<SenderSettings> = {},
): Promise<SenderProcess> {
  const location = toStoreLocation(url)
  assert.ok(location)
  const [STORE, SETTINGS] = [location, settings].map((value) => JSON.stringify(value))
  const env = { ...programEnv, STORE, SETTINGS }
  const child = fork(program, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  killAfterTest(child)
  const heard: Notice[] = []
  child.on('message', (notice: Notice) => heard.push(notice))
  const hear = (notice: Notice) => waitUntil(() => heard.includes(notice), notice)
  await hear('started')
  return {
    tell: (command) => void child.send(command),
    hear,
    async end(signal) {
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    },
  }
}
