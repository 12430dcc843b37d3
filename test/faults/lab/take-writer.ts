import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'
import { newReceiver, newTaken } from '../../support/receiver-record.ts'

// Creates plants after a take of webhooks, which is not synced, and prints the ids of those that
// are acknowledged. The first sync after the take fails.
const [path = ''] = process.argv.slice(2)
const store = buildSqliteStore(openConnection(path))
await store.receivers.add(newReceiver())
const [claim] = await store.receivers.claim('sender', 60_000)
if (claim === undefined) throw new Error('there is no lease')
await store.receivers.take('sender', newTaken({ ...claim, position: 'next' }))
process.env.DISK_FAULT = 'fsync:1:EIO:once:-wal'
for (let id = 1n; id <= 5n; id++) {
  await store.createPlant({ id, name: 'x' }).then(
    () => console.log(String(id)),
    () => {},
  )
}
process.kill(process.pid, 'SIGKILL')
