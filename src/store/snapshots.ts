import { maxSnapshots, type Snapshot, tooManySnapshots } from './store.ts'

/** Opens snapshots, a few at a time: an open one keeps the store from cleaning up behind itself. */
export function limitSnapshots(open: () => Promise<Snapshot>): () => Promise<Snapshot> {
  let openCount = 0

  return async () => {
    if (openCount === maxSnapshots) throw tooManySnapshots()
    openCount++
    try {
      return track(await open())
    } catch (error) {
      openCount--
      throw error
    }
  }

  function track(snapshot: Snapshot): Snapshot {
    let isOpen = true
    return {
      ...snapshot,
      async close() {
        if (!isOpen) return
        isOpen = false
        openCount--
        await snapshot.close()
      },
    }
  }
}
