import { Failure } from '../contract/errors.ts'
import type { Snapshot } from './store.ts'

/** The snapshots that may be open in one process, and for one token. */
export const maxSnapshots = 4
export const maxSnapshotsOfToken = 2

/** Limits open snapshots, because the store cannot reclaim space while one is open. */
export function limitSnapshots(
  open: (othersOpen: number) => Promise<Snapshot>,
): (tokenId?: string) => Promise<Snapshot> {
  const slots = new Set<{ readonly tokenId: string | undefined }>()

  return async (tokenId) => {
    if (slots.size === maxSnapshots) throw tooMany(`The service is sending ${maxSnapshots}`)
    const own = [...slots].filter((one) => one.tokenId === tokenId).length
    if (tokenId !== undefined && own === maxSnapshotsOfToken) {
      throw tooMany(`This token is reading ${maxSnapshotsOfToken}`)
    }
    const slot = { tokenId }
    const othersOpen = slots.size
    slots.add(slot)
    try {
      const snapshot = await open(othersOpen)
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

function tooMany(who: string): Failure {
  const message = `${who} exports already. Try again when one has ended.`
  return new Failure(50300, message, { reason: 'exports' })
}
