/** What shapes are written in: the part of JSON Schema that the contract needs, and the types that follow from it. */

interface Described {
  readonly title?: string
  readonly description: string
}

/** Text that every engine can keep. */
export interface TextShape extends Described {
  readonly type: 'string'
  readonly const?: string
  readonly examples?: readonly string[]
}

/** An int64 is a bigint with us, so that it is exact to the last digit. */
export interface IntegerShape extends Described {
  readonly type: 'integer'
  readonly format: 'int32' | 'int64'
  readonly minimum?: number
  readonly maximum?: number
  readonly examples?: readonly number[]
}

/** An object. Members that are not required may be absent; those that have no shape are ignored, or forbidden. */
export interface ObjectShape<Member extends TextShape | IntegerShape = TextShape | IntegerShape>
  extends Described {
  readonly type: 'object'
  readonly required: readonly string[]
  readonly properties: Readonly<Record<string, Member>>
  readonly additionalProperties?: false
}

export interface ArrayShape extends Described {
  readonly type: 'array'
  readonly items: ObjectShape
  readonly maxItems: number
}

/** What a client may send: objects of text and int64. */
export type BodyShape = ObjectShape<TextShape | (IntegerShape & { readonly format: 'int64' })>

export type AnyShape = TextShape | IntegerShape | ObjectShape | ArrayShape

/** The type of the values that have a shape. */
export type ValueOf<Shape> = Shape extends { const: infer Value }
  ? Value
  : Shape extends TextShape
    ? string
    : Shape extends IntegerShape
      ? Shape['format'] extends 'int64'
        ? bigint
        : number
      : Shape extends ArrayShape
        ? ValueOf<Shape['items']>[]
        : Shape extends ObjectShape
          ? MembersOf<Shape['properties'], Shape['required'][number]>
          : never

// A name that is required and has no shape makes a member that nothing can be assigned to.
type MembersOf<Shapes, Required extends string> = {
  [Name in Required]: Name extends keyof Shapes ? ValueOf<Shapes[Name]> : never
} & { -readonly [Name in Exclude<keyof Shapes, Required>]?: ValueOf<Shapes[Name]> }
