import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'

const blockBytes = 1024 * 1024

/**
 * Writes the WAL again as it is, and syncs it. After a failed sync, Linux counts the pages as
 * clean: a later sync does not write them, and a commit that succeeds could be lost together with
 * an unsynced one before it. The caller holds the write lock.
 */
export function rewriteWal(database: string | null): void {
  if (database === null) return
  const file = openSync(`${database}-wal`, 'r+')
  try {
    const block = Buffer.alloc(blockBytes)
    for (let at = 0; ; ) {
      const bytes = readSync(file, block, 0, block.length, at)
      if (bytes === 0) break
      at += writeSync(file, block, 0, bytes, at)
    }
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

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
