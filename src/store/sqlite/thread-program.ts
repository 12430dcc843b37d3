import { parentPort, workerData } from 'node:worker_threads'
import { type Batches, buildBatches } from './batches.ts'
import { buildStatements } from './changes.ts'
import { openBeside } from './connection.ts'
import { toErrorParts } from './error-parts.ts'
import { locked } from './failures.ts'
import type { Order, Reply, ThreadFile } from './thread.ts'

// What runs in the thread that writes: it opens a connection of its own and commits one batch after the other.
if (parentPort === null) throw new Error('this is a program for a thread')
const port = parentPort
const { path, settings } = workerData as ThreadFile
const db = openBeside(path, settings)
const batches = buildBatches(db, buildStatements(db))

port.on('message', (order: Order) => {
  if (order === 'close') {
    db.close()
    port.close()
  } else tell(commit(batches, order))
})
tell('ready')

function tell(reply: Reply): void {
  port.postMessage(reply)
}

function commit(batches: Batches, { changes, lockTimeoutMs }: Exclude<Order, 'close'>): Reply {
  const deadline = performance.now() + lockTimeoutMs
  try {
    // Each try blocks for a while by itself: here nobody else waits for this thread.
    while (!batches.tryBegin()) if (performance.now() > deadline) throw locked()
    return batches.run(changes)
  } catch (error) {
    return { failure: toErrorParts(error) }
  }
}
