import { parse } from './json.ts'
import { type Answer, toFailure } from './request.ts'
import type { PlantState, StoredPlant } from './types.ts'

/** The plant in an answer that must have one of these statuses. */
export function readPlant(
  answer: Answer,
  statuses: readonly number[],
  knownId?: bigint,
): PlantState {
  return readAs(answer, statuses, () => {
    const { id = knownId, name, tag } = parse(answer.text, (plant: Partial<StoredPlant>) => [plant])
    const plant = pickPlant({ id, name, tag })
    // A proxy that compresses marks the tag as weak, and If-Match would never match it.
    const etag = answer.headers.get('ETag')?.replace(/^W\//, '')
    if (etag === undefined) throw notOurs()
    return { ...plant, etag }
  })
}

/** The plants of a page. */
export function readPlants(answer: Answer): readonly StoredPlant[] {
  return readAs(answer, [200], () =>
    parse(answer.text, (plants: readonly StoredPlant[]) => plants).map(pickPlant),
  )
}

/** The members of a plant that the client knows. Throws if one has the wrong type. */
export function pickPlant({
  id,
  name,
  tag,
}: { [Name in keyof StoredPlant]?: unknown }): StoredPlant {
  if (typeof id !== 'bigint' || typeof name !== 'string') throw notOurs()
  if (tag === undefined) return { id, name }
  if (typeof tag !== 'string') throw notOurs()
  return { id, name, tag }
}

/** Reads an answer that must have one of these statuses. Any other answer is thrown. */
export function readAs<Result>(
  answer: Answer,
  statuses: readonly number[],
  toResult: () => Result,
): Result {
  if (!statuses.includes(answer.status)) throw toFailure(answer)
  try {
    return toResult()
  } catch (cause) {
    throw toFailure(answer, cause)
  }
}

/** Part of an answer is not what the contract says. */
export function notOurs(): Error {
  return new TypeError('A member or a header is missing or wrong.')
}
