import type { DatabaseSync } from 'node:sqlite'

const attempts = 100

/**
 * Proves that this connection syncs each commit, by what a commit does and not by what a pragma says. The
 * connection is open with `psow=0`: SQLite then pads a commit that it is about to sync to the next sector, by a
 * second copy of its last frame. So a commit of one page leaves two frames in the log, or one if it is not synced.
 */
export function assertCommitsAreSynced(db: DatabaseSync): void {
  const dataVersion = db.prepare('PRAGMA data_version')
  const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  const { user_version } = db.prepare('PRAGMA user_version').get() as { user_version: bigint }

  for (let attempt = 0; attempt < attempts; attempt++) {
    const before = dataVersion.get() as { data_version: bigint }
    const start = checkpoint.get() as { log: bigint; checkpointed: bigint }
    db.exec(`PRAGMA user_version = ${user_version}`)
    const end = checkpoint.get() as { log: bigint }
    const after = dataVersion.get() as { data_version: bigint }
    // Another process that wrote meanwhile makes the count meaningless: count again.
    if (before.data_version !== after.data_version) continue
    // A log that is checkpointed to its end starts anew with the next commit.
    const restarted = start.log === start.checkpointed
    const frames = restarted ? end.log : end.log - start.log
    if (frames === 2n) return
    throw new Error(`a commit left ${frames} frames in the log: it is not synced to disk`)
  }
  throw new Error(
    `could not watch a commit in ${attempts} attempts: other processes write all the time`,
  )
}
