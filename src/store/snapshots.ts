import {
  mostSnapshots,
  type PlantPage,
  type PlantQuery,
  type Snapshot,
  tooManySnapshots,
} from './store.ts'

/** How many plants of a walk are read at once. */
const pageSize = 1_000

/** Opens snapshots, a few at a time: an open one keeps the store from cleaning up behind itself. */
export function limitSnapshots(open: () => Promise<Snapshot>): () => Promise<Snapshot> {
  let openCount = 0

  return async () => {
    if (openCount === mostSnapshots) throw tooManySnapshots()
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

/** Every plant of a snapshot, a page at a time. The next page is on its way while one is being used. */
export async function* walkPlants(
  snapshot: Snapshot,
  { after, tag, limit }: PlantQuery,
): AsyncGenerator<PlantPage['plants']> {
  let left = limit

  function readPage(from: bigint | undefined): Promise<PlantPage> {
    const page = snapshot.listPlants({ after: from, tag, limit: Math.min(pageSize, left) })
    // Whoever stops in the middle does not wait for it: its failure would be nobody's.
    page.catch(() => {})
    return page
  }

  let page: Promise<PlantPage> | undefined = left > 0 ? readPage(after) : undefined
  while (page !== undefined) {
    const wanted = Math.min(pageSize, left)
    const { plants, isWhole } = await page
    left -= plants.length
    const isLast = left === 0 || (isWhole && plants.length < wanted)
    page = isLast ? undefined : readPage(plants.at(-1)?.id)
    yield plants
  }
}
