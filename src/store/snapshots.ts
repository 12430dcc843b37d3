import { tooManySnapshots, tooManySnapshotsOfToken } from './failures.ts'
import type { Snapshot } from './store.ts'

/** The snapshots that may be open in one process, and for one token. */
export const maxSnapshots = 4
export const maxSnapshotsOfToken = 2

/** Limits open snapshots, because the store cannot reclaim space while one is open. */
export function limitSnapshots(
  open: () => Promise<Snapshot>,
): (tokenId?: string) => Promise<Snapshot> {
  const owners: (string | undefined)[] = []

  function reserve(tokenId: string | undefined): void {
    if (owners.length === maxSnapshots) throw tooManySnapshots(maxSnapshots)
    const own = tokenId === undefined ? 0 : owners.filter((owner) => owner === tokenId).length
    if (own === maxSnapshotsOfToken) throw tooManySnapshotsOfToken(maxSnapshotsOfToken)
    owners.push(tokenId)
  }

  function release(tokenId: string | undefined): void {
    owners.splice(owners.indexOf(tokenId), 1)
  }

  return async (tokenId) => {
    reserve(tokenId)
    try {
      const snapshot = await open()
      let isOpen = true
      return {
        ...snapshot,
        async close() {
          if (!isOpen) return
          isOpen = false
          release(tokenId)
          await snapshot.close()
        },
      }
    } catch (error) {
      release(tokenId)
      throw error
    }
  }
}
