import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'

/**
 * Proves that connections opened this way sync each commit, by the effect of a commit rather than
 * the value of a pragma. It commits to a probe file beside the database, opened with `psow=0`.
 * SQLite then pads a commit that it is about to sync to the next sector, with a second copy of its
 * last frame. So a commit of one page leaves two frames in the WAL, or one if it is not synced.
 * Transactions that may be repeated are the exception: see `setSync` in transactions.ts.
 */
export function assertCommitsAreSynced(
  path: string,
  open: (path: string, parameters: Record<string, string>) => DatabaseSync,
): void {
  const probe = `${path}.probe-${randomBytes(6).toString('hex')}`
  let db: DatabaseSync | undefined
  try {
    db = open(probe, { psow: '0' })
    db.exec('PRAGMA user_version = 1')
    const { log } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as { log: bigint }
    if (log !== 2n) throw new Error(`a commit left ${log} frames in the WAL: it is not synced`)
  } finally {
    db?.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(probe + suffix, { force: true })
  }
}
