import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { UnusableStore } from '../store.ts'
import { readPragma } from './open-database.ts'

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

/** The values of the pragma `synchronous`. */
const levels = { NORMAL: 1, FULL: 2 }

/**
 * Sets which commits of a connection are synced: with FULL every one, with NORMAL only checkpoints.
 * SQLite ignores a pragma that it cannot obey, so the setting is read back.
 */
export function setSynchronous(db: DatabaseSync, level: keyof typeof levels): void {
  db.exec(`PRAGMA synchronous = ${level}`)
  const found = readPragma(db, 'synchronous')
  if (Number(found) === levels[level]) return
  throw new UnusableStore(`SQLite does not sync commits: synchronous is ${found}, not ${level}.`)
}
