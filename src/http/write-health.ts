/** A full disk counts as full until a write succeeds, or for this long without another write. */
const staleMs = 60_000

/** Remembers whether the last write found the disk full, for the readiness check. */
export interface WriteHealth {
  isDiskFull(): boolean
  noteDiskFull(): void
  noteSuccess(): void
}

export function buildWriteHealth(): WriteHealth {
  let fullAt = Number.NEGATIVE_INFINITY
  return {
    isDiskFull: () => performance.now() - fullAt < staleMs,
    noteDiskFull() {
      fullAt = performance.now()
    },
    noteSuccess() {
      fullAt = Number.NEGATIVE_INFINITY
    },
  }
}
