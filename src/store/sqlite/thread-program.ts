import { parentPort, workerData } from 'node:worker_threads'
import { locked } from '../failures.ts'
import { openBeside } from './connection.ts'
import type { Order, Reply, ThreadFile } from './thread.ts'
import { buildStatements, buildTransactions, type Transactions } from './transactions.ts'

// The program of the writer thread: it commits batches one at a time on its own connection.
if (parentPort === null) throw new Error('this is a program for a thread')
const port = parentPort
const { path, settings } = workerData as ThreadFile
const db = openBeside(path, settings)
const transactions = buildTransactions(db, buildStatements(db))

port.on('message', (order: Order) => {
  if (order === 'close') {
    db.close()
    port.close()
  } else reply(commit(transactions, order))
})
reply('ready')

function reply(message: Reply): void {
  port.postMessage(message)
}

function commit(
  transactions: Transactions,
  { changes, lockTimeoutMs }: Exclude<Order, 'close'>,
): Reply {
  const deadline = performance.now() + lockTimeoutMs
  try {
    // Each attempt blocks for the busy timeout, which is fine in this thread.
    while (!transactions.tryBegin(changes)) if (performance.now() > deadline) throw locked()
    return transactions.run(changes)
  } catch (error) {
    const failure = error as Error
    return { failure, members: { ...failure }, causeMembers: { ...(failure.cause as object) } }
  }
}
