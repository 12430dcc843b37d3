import type { FileBody, TextBody } from '../contract/operation.ts'
import type { OperationName, Operations } from '../contract/operations.ts'
import type { AnyShape, ArrayShape, ValueOf } from '../contract/schema.ts'
import type { Scope } from '../contract/scopes.ts'
import type { EventStream, StreamedBody, TextContent } from './exchange.ts'
import type { FileUpload } from './file-upload.ts'
import type { RequestParameters } from './parameters.ts'

type PathOf<Name extends OperationName> = Operations[Name]['path']
type Id<Name extends OperationName> =
  PathOf<Name> extends `${string}{id}${string}` ? { readonly id: bigint } : unknown
type Body<Name extends OperationName> = Operations[Name] extends {
  body: { shape: infer Shape extends AnyShape }
}
  ? { readonly body: ValueOf<Shape> }
  : Operations[Name] extends { body: FileBody }
    ? { readonly body: FileUpload }
    : unknown
type ParametersOf<Name extends OperationName> = Pick<
  RequestParameters,
  Operations[Name]['parameters'][number]
>

/** The part of a request that an operation declares, checked. */
export type Call<Name extends OperationName> = Id<Name> &
  Body<Name> & {
    readonly parameters: ParametersOf<Name>
    readonly baseUrl: string
    readonly tokenId: string
    readonly scopes: ReadonlySet<Scope>
    /** The media type that the client prefers, of those that the success has. */
    readonly mediaType: string
  }

type HeaderOf<Success, Kind extends string> =
  Success extends Record<Kind, readonly (infer Header extends string)[]> ? Header : never
/** A list may also come as text, or as a stream of events. */
type ContentOf<Shape extends AnyShape> =
  | ValueOf<Shape>
  | (Shape extends ArrayShape ? TextContent | EventStream : never)

/** One of the successes that an operation declares, with all of its headers. */
export type Answer<Name extends OperationName> = {
  [Status in keyof Operations[Name]['successes']]: {
    readonly status: Status
    readonly headers: Readonly<
      Record<HeaderOf<Operations[Name]['successes'][Status], 'headers'>, string> &
        Partial<Record<HeaderOf<Operations[Name]['successes'][Status], 'optionalHeaders'>, string>>
    >
    readonly body: Operations[Name]['successes'][Status] extends {
      body: { shape: infer Shape extends AnyShape }
    }
      ? ContentOf<Shape>
      : Operations[Name]['successes'][Status] extends { body: TextBody }
        ? TextContent | StreamedBody
        : undefined
  }
}[keyof Operations[Name]['successes']]

/** A handler for every operation: one that is missing does not compile. */
export type Handlers = {
  readonly [Name in OperationName]: (call: Call<Name>) => Answer<Name> | Promise<Answer<Name>>
}
