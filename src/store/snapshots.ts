import { tooManySnapshots, tooManySnapshotsOfToken } from './failures.ts'
import type { Snapshot } from './store.ts'

/** The snapshots that may be open in one process, and for one token. */
export const maxSnapshots = 4
export const maxSnapshotsOfToken = 2

/** Limits open snapshots, because the store cannot reclaim space while one is open. */
export function limitSnapshots(
  open: () => Promise<Snapshot>,
): (tokenId?: string) => Promise<Snapshot> {
  const slots = new Set<{ readonly tokenId: string | undefined }>()

  return async (tokenId) => {
    if (slots.size === maxSnapshots) throw tooManySnapshots(maxSnapshots)
    const own = [...slots].filter((one) => one.tokenId === tokenId).length
    if (tokenId !== undefined && own === maxSnapshotsOfToken) {
      throw tooManySnapshotsOfToken(maxSnapshotsOfToken)
    }
    const slot = { tokenId }
    slots.add(slot)
    try {
      const snapshot = await open()
      return {
        ...snapshot,
        async close() {
          if (slots.delete(slot)) await snapshot.close()
        },
      }
    } catch (error) {
      slots.delete(slot)
      throw error
    }
  }
}
