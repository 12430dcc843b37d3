import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { locked } from '../failures.ts'
import type { ReceiverStore } from '../receivers.ts'
import { openUnsynced } from './connection.ts'
import { isBusy, toRefusal } from './failures.ts'
import { buildReceiverStatements } from './receivers.ts'

/** Saves how far receivers are, without waiting for the disk. */
export interface ProgressWriter {
  readonly save: ReceiverStore['save']
  close(): void
}

const lockRetryMs = 1
const lockTimeoutMs = 5_000

/**
 * Opens the writer, and its own connection with the first save. Its commits are not synced: they
 * survive the end of the process, and after a power cut some changes are sent again.
 */
export function openProgressWriter(path: string): ProgressWriter {
  let opened: ReturnType<typeof open> | undefined

  function open() {
    const db = openUnsynced(path)
    return { db, begin: db.prepare('BEGIN IMMEDIATE'), ...buildReceiverStatements(db) }
  }

  return {
    async save(owner, saved) {
      try {
        opened ??= open()
        const { db, begin, writes } = opened
        await beginWhenUnlocked(() => begin.run())
        try {
          const lost = writes.save(owner, saved)
          db.exec('COMMIT')
          return lost
        } catch (error) {
          rollBack(db)
          throw error
        }
      } catch (error) {
        throw toRefusal(error)
      }
    },
    close: () => opened?.db.close(),
  }
}

/** Another connection may hold the lock while it waits for the disk. */
async function beginWhenUnlocked(begin: () => unknown): Promise<void> {
  const deadline = performance.now() + lockTimeoutMs
  for (;;) {
    try {
      begin()
      return
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() > deadline) throw locked()
      await sleep(lockRetryMs)
    }
  }
}

function rollBack(db: DatabaseSync): void {
  if (db.isTransaction) db.exec('ROLLBACK')
}
