import type { Static, TSchema } from 'typebox'
import { Failure } from '../contract/errors.ts'
import type { OperationName, Operations } from '../contract/operations.ts'
import type { Store, Version } from '../store/store.ts'

type PathOf<Name extends OperationName> = Operations[Name]['path']
type Id<Name extends OperationName> =
  PathOf<Name> extends `${string}{id}${string}` ? { readonly id: bigint } : unknown
type Body<Name extends OperationName> = Operations[Name] extends {
  body: infer Shape extends TSchema
}
  ? { readonly body: Static<Shape> }
  : unknown

/** What a handler is told of a request: only what its operation declares, checked. */
export type Call<Name extends OperationName> = Id<Name> & Body<Name> & { readonly baseUrl: string }

/** What a handler may answer: one of the successes that its operation declares, with all of its headers. */
export type Answer<Name extends OperationName> = {
  [Status in keyof Operations[Name]['successes']]: Operations[Name]['successes'][Status] extends {
    shape: infer Shape extends TSchema
    headers: readonly (infer Header extends string)[]
  }
    ? {
        readonly status: Status
        readonly headers: Readonly<Record<Exclude<Header, 'X-Request-Id'>, string>>
        readonly body: Static<Shape>
      }
    : never
}[keyof Operations[Name]['successes']]

/** A handler for every operation: one that is missing does not compile. */
export type Handlers = {
  readonly [Name in OperationName]: (call: Call<Name>) => Promise<Answer<Name>>
}

export function buildHandlers(store: Store): Handlers {
  return {
    async createPlant({ body: { id, name, tag }, baseUrl }) {
      const plant = tag === undefined ? { name } : { name, tag }
      const version = await store.createPlant({ id, ...plant })
      if (version === 'exists') {
        throw new Failure(40900, `A plant with the id ${id} exists. It was not changed.`)
      }
      return {
        status: 200,
        headers: { Location: `${baseUrl}/plants/${id}`, ETag: toETag(version) },
        body: plant,
      }
    },

    async getPlant({ id }) {
      const plant = await store.getPlant(id)
      if (plant === undefined) throw new Failure(40401, `No plant has the id ${id}.`)
      return { status: 200, headers: { ETag: toETag(plant.version) }, body: plant }
    },
  }
}

function toETag(version: Version): string {
  return `"${version.toString(36)}"`
}
