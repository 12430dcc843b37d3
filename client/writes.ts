import { readPlant } from './answers.ts'
import type { Answer } from './attempt.ts'
import { run, toFailure } from './call.ts'
import { PlantStoreError } from './errors.ts'
import { requireId, toPlantJson } from './json.ts'
import type { RequestOf } from './operations.ts'
import type { Link } from './options.ts'
import type { DeleteOptions, Plant, PlantState, ReplacedPlant, ReplaceOptions } from './types.ts'

/** Reads one plant. */
export function getPlant(
  link: Link,
  id: bigint,
  signal: AbortSignal | undefined,
): Promise<PlantState | undefined> {
  return run<PlantState | undefined>(link, {
    request: {
      method: 'GET',
      path: `/plants/${requireId(id)}`,
    } satisfies RequestOf<'getPlant'>,
    signal,
    read: (answer) => (isAbsent(answer) ? undefined : readPlant<'getPlant'>(answer, [200])),
  })
}

/** Replaces a plant, once: after a lost answer it looks before it tries again. */
export function replacePlant(
  link: Link,
  id: bigint,
  plant: Plant,
  options: ReplaceOptions,
): Promise<ReplacedPlant> {
  const { ifMatch, ifNoneMatch, signal } = options

  async function look(lost: PlantStoreError) {
    const current = await getPlant(link, id, signal)
    const isWritten = current?.name === plant.name && current.tag === plant.tag
    if (current !== undefined && isWritten && !isNamed(current, ifMatch)) {
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
    } satisfies RequestOf<'replacePlant'>,
    signal,
    look,
    async read(answer, lost) {
      const found = answer.status === 412 && lost ? await look(lost) : undefined
      if (found !== undefined) return found
      const replaced = readPlant<'replacePlant'>(answer, [200, 201])
      return { ...replaced, created: answer.status === 201 }
    },
  })
}

/** Deletes a plant. After a lost answer, a plant that is gone counts as deleted by this call. */
export function deletePlant(link: Link, id: bigint, options: DeleteOptions): Promise<boolean> {
  const { signal } = options

  async function look(lost: PlantStoreError): Promise<true | undefined> {
    const current = await getPlant(link, id, signal)
    if (current === undefined) return true
    requireUntouched(current, options, lost)
    return undefined
  }

  return run<boolean>(link, {
    request: {
      method: 'DELETE',
      path: `/plants/${requireId(id)}`,
      headers: toHeaders(options),
    } satisfies RequestOf<'deletePlant'>,
    signal,
    look,
    async read(answer, lost) {
      if (isAbsent(answer)) return lost !== undefined
      if (answer.status === 412 && lost && (await look(lost))) return true
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
  return {
    'If-Match': requireField('ifMatch', ifMatch),
    'If-None-Match': requireField('ifNoneMatch', ifNoneMatch),
  }
}

/** Refuses text that no header may hold, which `fetch` would report like a lost connection. */
export function requireField<Value extends string | undefined>(name: string, value: Value): Value {
  if (value === undefined || (typeof value === 'string' && /^[ -~]+$/.test(value))) return value
  throw new TypeError(`${name} must be a string of visible ASCII characters.`)
}
