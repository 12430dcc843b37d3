import type { HeaderName } from '../src/contract/headers.ts'
import type { OperationName } from '../src/contract/operations.ts'
import type { Answer } from './attempt.ts'
import { toFailure } from './call.ts'
import type { PlantStoreError } from './errors.ts'
import { parse } from './json.ts'
import type { HeaderOf, StatusOf } from './operations.ts'
import type { PlantState, StoredPlant } from './types.ts'

/** The plant in an answer that must have one of these statuses. */
export function readPlant<Name extends 'createPlant' | 'getPlant' | 'replacePlant'>(
  answer: Answer,
  statuses: readonly StatusOf<Name>[],
  knownId?: bigint,
): PlantState {
  return readAs<Name, PlantState>(answer, statuses, () => {
    const { id = knownId, name, tag } = parse(answer.text, toOnlyPlant)
    const plant = pickPlant({ id, name, tag })
    const etag = toHeader(
      answer,
      'ETag' satisfies HeaderOf<'createPlant'> & HeaderOf<'getPlant'> & HeaderOf<'replacePlant'>,
    )
    if (etag === null) throw notOurs()
    return { ...plant, etag }
  })
}

/** The plants of a page. */
export function readPlants(answer: Answer): readonly StoredPlant[] {
  return readAs<'listPlants', readonly StoredPlant[]>(answer, [200], () =>
    parse(answer.text, toAllPlants).map(pickPlant),
  )
}

/** The members of a plant that the client knows, if they are what they should be. */
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

/**
 * Reads an answer that must have one of these statuses. Any other answer is thrown, caused by the
 * attempt before it whose answer was lost, if any.
 */
export function readAs<Name extends OperationName, Result>(
  answer: Answer,
  statuses: readonly StatusOf<Name>[],
  toResult: () => Result,
  lost?: PlantStoreError,
): Result {
  if (!(statuses as readonly number[]).includes(answer.status)) throw toFailure(answer, lost)
  try {
    return toResult()
  } catch (cause) {
    throw toFailure(answer, cause)
  }
}

/** A header that an operation declares. */
export function toHeader(answer: Answer, name: HeaderName): string | null {
  return answer.headers.get(name)
}

function toOnlyPlant(value: Partial<StoredPlant>): [Partial<StoredPlant>] {
  return [value]
}

function toAllPlants(value: readonly StoredPlant[]): readonly StoredPlant[] {
  return value
}

/** Part of an answer is not what the contract says. */
export function notOurs(): Error {
  return new TypeError('A member or a header is missing or wrong.')
}
