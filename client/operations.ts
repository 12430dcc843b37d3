import type { OperationName, Operations } from '../src/contract/operations.ts'
import type { parameters } from '../src/contract/parameters.ts'
import type { ValueOf } from '../src/contract/schema.ts'
import type { ImportReport, NewPlant, Plant, PlantEvent, Refusal, StoredPlant } from './types.ts'

/**
 * Requests and answers as the contract types them: an operation that changes in a way that the
 * client does not follow fails to compile.
 */

type ParameterOf<Name extends OperationName> = Operations[Name]['parameters'][number]
type SuccessOf<Name extends OperationName> =
  Operations[Name]['successes'][keyof Operations[Name]['successes']]

/** The names of parameters in a request; a parameter may be kept under another one. */
type Named<Name extends keyof typeof parameters, In extends 'query' | 'header'> = {
  [Each in Name]: (typeof parameters)[Each] extends { in: In }
    ? (typeof parameters)[Each] extends { name: infer Given extends string }
      ? Given
      : Each
    : never
}[Name]

type PathOf<Path extends string> = Path extends `${infer Before}{id}${infer After}`
  ? `${Before}${bigint}${After}`
  : Path

type Values<Name extends string> = {
  readonly [Each in Name]?: string | number | bigint | undefined
}

/** A request of an operation. */
export interface RequestOf<Name extends OperationName> {
  readonly method: Operations[Name]['method']
  readonly path: PathOf<Operations[Name]['path']>
  readonly query?: Values<Named<ParameterOf<Name>, 'query'>>
  readonly headers?: Values<Named<ParameterOf<Name>, 'header'>>
  readonly body?: Operations[Name] extends { body: object } ? string : never
  /** The media type of the body. */
  readonly mediaType?: Operations[Name] extends { body: { mediaType: infer Type } } ? Type : never
}

/** The statuses of the successes of an operation. */
export type StatusOf<Name extends OperationName> = keyof Operations[Name]['successes']

/** The response headers of an operation. */
export type HeaderOf<Name extends OperationName> =
  SuccessOf<Name> extends infer Success
    ?
        | (Success extends { headers: readonly (infer Header)[] } ? Header : never)
        | (Success extends { optionalHeaders: readonly (infer Header)[] } ? Header : never)
    : never

/** The media type of a success that is no JSON. */
export type StreamTypeOf<Name extends OperationName> =
  SuccessOf<Name> extends { alternatives: readonly { mediaType: infer Type }[] } ? Type : never

type BodyOf<Name extends OperationName> = Operations[Name] extends { body: { shape: infer Shape } }
  ? ValueOf<Shape>
  : never

type ResultOf<Name extends OperationName> =
  SuccessOf<Name> extends infer Success
    ? Success extends { body: { shape: infer Shape } }
      ? ValueOf<Shape>
      : never
    : never

/** Accepts only `true`: the shapes of the client are those of the contract. */
type Require<_Comparisons extends readonly true[]> = never
type Same<Own, Contract> = [Marked<Own>, Marked<Contract>] extends [Marked<Contract>, Marked<Own>]
  ? true
  : { own: Marked<Own>; contract: Marked<Contract> }
/** The members, marked by whether they are optional. */
type Marked<Value> = {
  [Name in keyof Value]-?: [Exclude<Value[Name], undefined>, Mark<Value, Name>]
}
type Mark<Value, Name extends keyof Value> =
  Record<never, never> extends Pick<Value, Name> ? 'optional' : 'required'

export type FollowsContract = Require<
  [
    Same<NewPlant, BodyOf<'createPlant'>>,
    Same<Plant, BodyOf<'replacePlant'>>,
    Same<Plant, ResultOf<'createPlant'>>,
    Same<StoredPlant, ResultOf<'getPlant'>>,
    Same<StoredPlant, ResultOf<'replacePlant'>>,
    Same<StoredPlant, ResultOf<'listPlants'>[number]>,
    // The parts of an import are too small to end early.
    Same<
      Omit<ImportReport, 'refused'>,
      Omit<ResultOf<'importPlantsAsNdjson'>, 'refused' | 'endedAtLine'>
    >,
    Same<PlantEvent, ResultOf<'listEvents'>[number]>,
    Same<Refusal, ResultOf<'importPlantsAsNdjson'>['refused'][number]>,
  ]
>
