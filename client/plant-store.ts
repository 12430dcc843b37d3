import { followEvents, mirrorPlants, readPosition } from './events.ts'
import { importPlants } from './import-parts.ts'
import { readPlant, toNewPlantJson } from './json.ts'
import { deletePlant, getPlant, listPlants, replacePlant } from './plant-calls.ts'
import { PlantStoreError } from './plant-store-error.ts'
import {
  type Link,
  type PlantStoreOptions,
  pause,
  run,
  toJitterMs,
  toLink,
  untilAborted,
} from './request.ts'
import type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  EventsOptions,
  ImportOptions,
  ImportReport,
  ListOptions,
  MirrorChange,
  MirrorOptions,
  NewPlant,
  Plant,
  PlantEvent,
  PlantState,
  ReplacedPlant,
  ReplaceOptions,
  StoredPlant,
} from './types.ts'

/** How often `update` starts over because another client was faster. */
const maxConflicts = 1_000

/**
 * A client of a Plant Store. Ids are bigints, exact to the last digit. A call that the service
 * could not serve is tried again, and no write is applied twice. Every call rejects with a
 * {@link PlantStoreError} if it fails, and with the reason of its signal if that aborts.
 */
export class PlantStore {
  readonly #link: Link

  /**
   * Checks the options and sends nothing.
   * @throws TypeError that names the wrong option.
   */
  constructor(options: PlantStoreOptions) {
    this.#link = toLink(options)
  }

  /**
   * Creates a plant. Every attempt carries the same `Idempotency-Key`, so a retry never fails
   * because of the attempt before it.
   * @throws PlantStoreError 40900 if a plant has this id, 40003 if the service refuses the plant.
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<PlantState> {
    const { idempotencyKey = newKey(), signal } = options
    const headers = { 'Idempotency-Key': idempotencyKey }
    return run<PlantState>(this.#link, {
      request: { method: 'POST', path: '/plants', headers, body: toNewPlantJson(plant) },
      signal,
      read: (answer) => readPlant(answer, [200], plant.id),
    })
  }

  /** Reads a plant; undefined if there is none. */
  async get(id: bigint, options: CallOptions = {}): Promise<PlantState | undefined> {
    return getPlant(this.#link, id, options.signal)
  }

  /**
   * Stores a plant under an id, in place of the one that is there, if any. `ifMatch` takes the
   * `etag` of the state to replace; `ifNoneMatch: '*'` creates, and replaces nothing.
   * @throws PlantStoreError 41200 if a condition does not hold.
   */
  async replace(id: bigint, plant: Plant, options: ReplaceOptions = {}): Promise<ReplacedPlant> {
    return replacePlant(this.#link, id, plant, options)
  }

  /**
   * Changes a plant without losing changes by others: reads it, calls `change`, and writes the
   * result if the plant is still the same; otherwise it starts over. If `change` returns undefined,
   * the plant is left as it is. Returns the resulting plant; undefined if there is none.
   */
  async update(
    id: bigint,
    change: (plant: PlantState) => Plant | undefined | Promise<Plant | undefined>,
    options: CallOptions = {},
  ): Promise<PlantState | undefined> {
    const { signal } = options
    for (let conflict = 1; ; conflict++) {
      const plant = await getPlant(this.#link, id, signal)
      if (plant === undefined) return undefined
      const condition = { ifMatch: plant.etag, signal }
      const changed = await untilAborted(change(plant), signal)
      if (changed === undefined) return plant
      try {
        const replaced = await replacePlant(this.#link, id, changed, condition)
        const { created: _, ...written } = replaced
        return written
      } catch (error) {
        const isConflict = error instanceof PlantStoreError && error.error === 41200
        if (!isConflict || conflict >= maxConflicts) throw error
      }
      await pause(toJitterMs(conflict, 10, 1_000), signal)
    }
  }

  /**
   * Deletes a plant; false if there was none.
   * @throws PlantStoreError 41200 if the plant is not in the state that `ifMatch` names.
   */
  async delete(id: bigint, options: DeleteOptions = {}): Promise<boolean> {
    return deletePlant(this.#link, id, options)
  }

  /** All plants in the order of their ids, read page by page as the caller takes them. */
  list(options: ListOptions = {}): AsyncIterableIterator<StoredPlant> {
    return listPlants(this.#link, options)
  }

  /**
   * Imports any number of plants from any iterable, in requests of about 1 MiB. Plants that the
   * service refuses are in the report. After a failure, what came before it stays stored, and the
   * same import recognises it.
   */
  async importPlants(
    plants: Iterable<NewPlant> | AsyncIterable<NewPlant>,
    options: ImportOptions = {},
  ): Promise<ImportReport> {
    return importPlants(this.#link, plants, options)
  }

  /**
   * Follows the changes of all plants, in order, until the caller stops. Reconnects by itself after
   * a lost connection, without gaps and without duplicates.
   * @throws PositionGoneError if the service no longer keeps the position.
   */
  events(options: EventsOptions = {}): AsyncIterableIterator<PlantEvent> {
    return followEvents(this.#link, options)
  }

  /** The position after every change that is there now, for `events` and `mirror`. */
  async position(options: CallOptions = {}): Promise<string> {
    return readPosition(this.#link, options.signal)
  }

  /**
   * Keeps a copy in sync, until the caller stops: a `reset`, a `plant` for each plant, the events
   * that came meanwhile, `synced`, then events. With `after`, only events from there. If the
   * service no longer keeps the position, it begins again with a `reset`.
   */
  mirror(options: MirrorOptions = {}): AsyncIterableIterator<MirrorChange> {
    return mirrorPlants(this.#link, options)
  }
}

/** An idempotency key of 128 random bits. `randomUUID` is missing on pages over plain HTTP. */
function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}
