import { openStore, type toStoreLocation } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import type { SenderSettings } from '../../../src/webhooks/settings.ts'
import { openTestSender } from '../../webhooks/test-sender.ts'

/** What the test tells this process. */
export type Command = 'hold saves' | 'let saves go' | 'hold takes'

/** What this process tells the test. */
export type Notice = 'started' | 'saves wait' | 'a save is held' | 'takes wait' | 'a take is held'

// A sender in a process of its own, which a test can kill. The test can hold back its saves,
// or what comes after a take.
const location = JSON.parse(process.env.STORE ?? '') as ReturnType<typeof toStoreLocation>
if (location === undefined) throw new Error('STORE is missing')
const opened = await openStore(location)
let held: PromiseWithResolvers<void> | undefined
let isTakeHeld = false

const store: Store = {
  ...opened,
  receivers: {
    ...opened.receivers,
    async save(...saved) {
      if (held !== undefined) {
        tell('a save is held')
        await held.promise
      }
      return opened.receivers.save(...saved)
    },
    async take(...taken) {
      const isKept = await opened.receivers.take(...taken)
      if (!isTakeHeld) return isKept
      tell('a take is held')
      return new Promise(() => {})
    },
  },
}

process.on('message', (command: Command) => {
  if (command === 'hold takes') {
    isTakeHeld = true
    tell('takes wait')
    return
  }
  held?.resolve()
  held = command === 'hold saves' ? Promise.withResolvers() : undefined
  if (held !== undefined) tell('saves wait')
})
// The test is gone.
process.on('disconnect', () => process.exit(1))

const settings = JSON.parse(process.env.SETTINGS ?? '{}') as Partial<SenderSettings>
const sender = openTestSender(store, { leaseMs: 900, renewMs: 300, closeMs: 500, ...settings })
process.once('SIGTERM', async () => {
  await sender.close()
  await opened.close()
  process.exit(0)
})
tell('started')

function tell(notice: Notice): void {
  process.send?.(notice)
}
