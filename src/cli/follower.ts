import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MirrorChange, StoredPlant } from '../../client/index.ts'
import { limits } from '../contract/limits.ts'
import type { Store } from '../store/store.ts'

/** What was written to the copy at once. */
export interface Written {
  readonly changes: number
  readonly isFilling: boolean
  readonly position: string | undefined
  /** When the source made the last change; undefined unless there was one. */
  readonly changedAt: number | undefined
}

export interface Following {
  readonly store: Store
  readonly source: string
  /** The revision of the copy at which the changes begin. */
  readonly revision: number
  readonly changes: AsyncIterable<MirrorChange>
  readonly onWritten: (written: Written) => void
  /** Ends the changes: the copy could not be written. */
  readonly onFailed: (error: unknown) => void
}

/** Another process has brought the copy forward, so a batch was not written. */
export class Overtaken extends Error {
  constructor() {
    super('Another process writes to the copy.')
    this.name = 'Overtaken'
  }
}

/** The last change of each plant, undefined for one that is gone, and where they lead. */
interface Batch {
  readonly plants: Map<bigint, StoredPlant | undefined>
  characters: number
  position: string | undefined
  changedAt: number | undefined
}

const newBatch = (): Batch => ({
  plants: new Map(),
  characters: 0,
  position: undefined,
  changedAt: undefined,
})

/** As much as a page of plants has. */
const maxPlants = 1_000

/**
 * Writes the changes of a mirror to a copy. While one batch is written, the next one collects.
 *
 * Plants of the source come in the order of their ids. So a copy that holds some already is not
 * emptied: what it has in between, and the source has not, is removed from it. Until the mirror is
 * synced the copy has no position, and a process that starts then begins again.
 */
export async function writeChanges(following: Following): Promise<void> {
  const { store, source, changes, onWritten, onFailed } = following
  let { revision } = following
  let batch = newBatch()
  let writing = Promise.resolve()
  let isFilling = false
  let isListing = false
  /** The copy has nothing up to this id that the source has not. */
  let comparedTo: bigint | undefined
  let isCompared = false

  function add(plant: StoredPlant, effect: 'put' | 'remove'): void {
    batch.plants.set(plant.id, effect === 'put' ? plant : undefined)
    batch.characters += plant.name.length + (plant.tag?.length ?? 0)
  }

  function isFull(): boolean {
    return batch.plants.size >= maxPlants || batch.characters >= limits.pageBytes
  }

  /** Writes the batch after those before it, and waits for those only. */
  async function write(): Promise<void> {
    const { plants, position, changedAt } = batch
    const written = { changes: plants.size, isFilling, position, changedAt }
    batch = newBatch()
    const before = writing
    writing = before
      .then(() =>
        store.followChanges({
          source,
          after: revision,
          position,
          plants: [...plants.values()].filter((plant) => plant !== undefined),
          removed: [...plants].flatMap(([id, plant]) => (plant === undefined ? [id] : [])),
        }),
      )
      .then((outcome) => {
        if (outcome === 'overtaken') throw new Overtaken()
        revision++
        onWritten(written)
      })
    writing.catch(onFailed)
    await before
  }

  async function writeIfAny(): Promise<void> {
    if (batch.plants.size > 0 || batch.position !== undefined) await write()
  }

  let isScheduled = false
  /** Changes that arrive together, or while others are written, are written at once. */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    Promise.all([nextTurn(), writing])
      .then(() => {
        isScheduled = false
        return writeIfAny()
      })
      .catch(onFailed)
  }

  /** Removes what the copy has up to this id, and the source has not. */
  async function compare(upTo: bigint | undefined): Promise<void> {
    const kept = batch.plants
    while (!isCompared) {
      const page = await store.listPlants({ after: comparedTo, tag: undefined, limit: maxPlants })
      isCompared = page.plants.length === 0
      for (const plant of page.plants) {
        if (upTo !== undefined && plant.id > upTo) {
          comparedTo = upTo
          return
        }
        comparedTo = plant.id
        if (!kept.has(plant.id)) add(plant, 'remove')
      }
      if (isFull()) await write()
    }
  }

  async function addListed(plant: StoredPlant): Promise<void> {
    add(plant, 'put')
    if (!isFull()) return
    await compare(plant.id)
    await writeIfAny()
  }

  async function endList(): Promise<void> {
    isListing = false
    await compare(undefined)
    await writeIfAny()
  }

  async function take(change: MirrorChange): Promise<void> {
    if (change.type === 'plant') return addListed(change.plant)
    if (isListing && change.type !== 'reset') await endList()
    if (change.type === 'reset') {
      isFilling = true
      isListing = true
      isCompared = false
      comparedTo = undefined
      batch.position = undefined
      await write()
      // A list of the copy must not miss a plant that is still being written.
      await writing
    } else if (change.type === 'synced') {
      isFilling = false
      batch.position = change.position
      schedule()
    } else {
      add(change.plant, change.type === 'plant.deleted' ? 'remove' : 'put')
      batch.changedAt = Date.parse(change.at)
      if (!isFilling) batch.position = change.position
      if (isFull()) await write()
      else schedule()
    }
  }

  try {
    for await (const change of changes) await take(change)
  } finally {
    batch = newBatch()
    await writing.catch(() => {})
  }
}
