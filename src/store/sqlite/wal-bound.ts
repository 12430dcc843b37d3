import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { walTooLarge } from '../failures.ts'
import type { Snapshot } from '../store.ts'
import { type EndableSnapshot, openSnapshot } from './snapshot.ts'

/**
 * SQLite cannot reset the WAL while a snapshot reads from it, so it grows with the writes during
 * overlapping exports. Above the first size no snapshot is opened; above the second the oldest
 * ends.
 */
export interface WalBounds {
  readonly refuseBytes: number
  readonly endBytes: number
}

export const defaultWalBounds: WalBounds = {
  refuseBytes: 64 * 1024 * 1024,
  endBytes: 256 * 1024 * 1024,
}

/** How often the size of the WAL is checked while a snapshot is open. */
const pollMs = 200

/** Opens snapshots while the WAL is small, and ends the oldest if it grows too large. */
export function boundWal(db: DatabaseSync, { refuseBytes, endBytes }: WalBounds) {
  const path = db.location()
  const open: EndableSnapshot[] = []
  let timer: NodeJS.Timeout | undefined

  // An unknown size must not end the process.
  function walBytes(): number {
    try {
      return path === null ? 0 : statSync(`${path}-wal`).size
    } catch {
      return 0
    }
  }

  function check(): void {
    if (walBytes() > endBytes) open.shift()?.end(walTooLarge())
    if (open.length === 0) stop()
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  function forget(snapshot: EndableSnapshot): void {
    const index = open.indexOf(snapshot)
    if (index !== -1) open.splice(index, 1)
    if (open.length === 0) stop()
  }

  return (): Snapshot => {
    if (open.length > 0 && walBytes() > refuseBytes) throw walTooLarge()
    const snapshot = openSnapshot(db)
    open.push(snapshot)
    timer ??= setInterval(check, pollMs).unref()
    return {
      ...snapshot,
      async close() {
        forget(snapshot)
        await snapshot.close()
      },
    }
  }
}
