import { readPlant, readPlants, requireId, toPlantJson } from './json.ts'
import { PlantStoreError } from './plant-store-error.ts'
import { type Answer, type Link, run, toFailure, toUnknown } from './request.ts'
import type {
  DeleteOptions,
  ListOptions,
  Plant,
  PlantState,
  ReplacedPlant,
  ReplaceOptions,
  StoredPlant,
} from './types.ts'

/** Reads one plant. */
export function getPlant(
  link: Link,
  id: bigint,
  signal: AbortSignal | undefined,
): Promise<PlantState | undefined> {
  return run<PlantState | undefined>(link, {
    request: { method: 'GET', path: `/plants/${requireId(id)}` },
    signal,
    read: (answer) => (isAbsent(answer) ? undefined : readPlant(answer, [200])),
  })
}

/** Reads a plant after a lost answer. A failure says that the answer was lost, not this one. */
async function getAfter(
  lost: PlantStoreError,
  link: Link,
  id: bigint,
  signal: AbortSignal | undefined,
): Promise<PlantState | undefined> {
  try {
    return await getPlant(link, id, signal)
  } catch (cause) {
    signal?.throwIfAborted()
    throw toUnknown(lost, cause)
  }
}

/** Replaces a plant, once: after a lost answer it reads the plant before it tries again. */
export function replacePlant(
  link: Link,
  id: bigint,
  plant: Plant,
  options: ReplaceOptions,
): Promise<ReplacedPlant> {
  const { ifMatch, ifNoneMatch, signal } = options

  async function look(lost: PlantStoreError) {
    const current = await getAfter(lost, link, id, signal)
    const isWritten = current?.name === plant.name && current.tag === plant.tag
    const isOld = [ifMatch, ifNoneMatch].some((named) => isNamed(current, named))
    if (current !== undefined && isWritten && !isOld) {
      return { ...current, created: ifNoneMatch === '*' }
    }
    requireUntouched(current, options, lost)
    return undefined
  }

  return run(link, {
    request: {
      method: 'PUT',
      path: `/plants/${requireId(id)}`,
      headers: toHeaders(options),
      body: toPlantJson(plant),
    },
    signal,
    look,
    read(answer) {
      const replaced = readPlant(answer, [200, 201])
      return { ...replaced, created: answer.status === 201 }
    },
  })
}

/** Deletes a plant. After a lost answer, a plant that is gone counts as deleted by this call. */
export function deletePlant(link: Link, id: bigint, options: DeleteOptions): Promise<boolean> {
  const { signal } = options

  async function look(lost: PlantStoreError): Promise<true | undefined> {
    const current = await getAfter(lost, link, id, signal)
    if (current === undefined) return true
    requireUntouched(current, options, lost)
    return undefined
  }

  return run<boolean>(link, {
    request: { method: 'DELETE', path: `/plants/${requireId(id)}`, headers: toHeaders(options) },
    signal,
    look,
    read(answer, wasLost) {
      if (isAbsent(answer)) return wasLost
      if (answer.status !== 204) throw toFailure(answer)
      return true
    },
  })
}

/** Whether the answer says that no plant has the id. */
function isAbsent(answer: Answer): boolean {
  return answer.status === 404 && toFailure(answer).error === 40401
}

/**
 * Refuses another attempt if the state that the caller named is gone: this call may have replaced
 * it, before another client changed the plant again.
 */
function requireUntouched(
  current: PlantState | undefined,
  { ifMatch, ifNoneMatch }: ReplaceOptions,
  lost: PlantStoreError,
): void {
  const isUntouched =
    ifNoneMatch === '*'
      ? current === undefined
      : ifMatch === undefined || ifMatch === '*' || isNamed(current, ifMatch)
  if (isUntouched) return
  throw new PlantStoreError(
    'The answer was lost and the plant has changed since, so nobody knows whether this write ' +
      `was applied before that: read the plant. (${lost.message})`,
    lost,
  )
}

function isNamed(plant: PlantState | undefined, entityTags: string | undefined): boolean {
  return plant !== undefined && (entityTags?.includes(plant.etag) ?? false)
}

function toHeaders({ ifMatch, ifNoneMatch }: ReplaceOptions) {
  return { 'If-Match': ifMatch, 'If-None-Match': ifNoneMatch }
}

/**
 * Lists plants, page by page as the caller takes them. The next page starts after an id, so a page
 * can be read again. A page of a search can be empty although others follow.
 */
export async function* listPlants(
  link: Link,
  { tag, name, order, after, pageSize: limit = 1_000, signal }: ListOptions,
): AsyncGenerator<StoredPlant, undefined> {
  if (after !== undefined) requireId(after)
  for (;;) {
    const query = { limit, after, tag, name, order }
    const { plants, next } = await run(link, {
      request: { method: 'GET', path: '/plants', query },
      signal,
      read: (answer) => ({ plants: readPlants(answer), next: answer.headers.get('Link') }),
    })
    for (const plant of plants) {
      yield plant
      signal?.throwIfAborted()
    }
    after = next === null ? undefined : (toNext(next) ?? plants.at(-1)?.id)
    if (after === undefined) return
  }
}

/** The id after which the next page begins. */
function toNext(link: string): bigint | undefined {
  const [, after] = /[?&]after=(-?\d{1,19})\b/.exec(link) ?? []
  return after === undefined ? undefined : BigInt(after)
}
