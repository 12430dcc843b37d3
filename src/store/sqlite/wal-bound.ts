import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { walTooLarge } from '../failures.ts'
import type { Snapshot } from '../store.ts'
import { type EndableSnapshot, openSnapshot } from './snapshot.ts'

/**
 * The log cannot start again while a snapshot needs it, so writes beside exports that overlap make
 * it grow. Beyond the first size no further snapshot is opened; beyond the second the oldest ends.
 */
export interface WalBounds {
  readonly refuseBytes: number
  readonly endBytes: number
}

export const defaultWalBounds: WalBounds = {
  refuseBytes: 64 * 1024 * 1024,
  endBytes: 256 * 1024 * 1024,
}

/** How often the size of the log is looked at while a snapshot is open. */
const pollMs = 200

/** Opens snapshots as long as the log is small, and ends the oldest while it is too large. */
export function boundWal(db: DatabaseSync, { refuseBytes, endBytes }: WalBounds) {
  const path = db.location()
  const open: EndableSnapshot[] = []
  let timer: NodeJS.Timeout | undefined

  // A log that cannot be looked at says nothing about its size, and must not end the process.
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
