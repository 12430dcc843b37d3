/**
 * The part of JSON Schema that the contract is written in, and the TypeScript types that follow
 * from it.
 */

interface Described {
  readonly description: string
}

/** Text. The pattern is only published; `isStorable` does the checking. */
export interface TextShape extends Described {
  readonly type: 'string'
  readonly pattern?: string
  readonly maxLength?: number
  readonly format?: 'date-time'
  readonly enum?: readonly string[]
  readonly examples?: readonly string[]
}

/** An integer. An int64 is a bigint in our code, exact to the last digit, and so are its bounds. */
export interface IntegerShape extends Described {
  readonly type: 'integer'
  readonly format: 'int32' | 'int64'
  readonly minimum: number | bigint
  readonly maximum: number | bigint
  readonly examples?: readonly number[]
}

/** The bounds of int64. */
export const int64Bounds = { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n } as const

declare global {
  interface JSON {
    /** Text for `stringify` to write as it is. TypeScript does not declare it yet. */
    rawJSON(text: string): unknown
  }
}

/** An integer for `JSON.stringify`, which writes all of its digits. */
export function toExactJson(value: bigint): unknown {
  return JSON.rawJSON(String(value))
}

/** Text without NUL. The pattern says `\x00` because RE2 does not support `\u0000`. */
export const storablePattern = '^[^\\x00]*$'

/** A shape that the document lists under its title. */
interface Titled extends Described {
  readonly title: string
}

export type AnyShape = TextShape | IntegerShape | ArrayShape | ObjectShape

/**
 * An object. Members that are not required may be absent. Members without a shape are ignored, or
 * forbidden where `additionalProperties` is false.
 */
export interface ObjectShape<Member extends AnyShape = AnyShape> extends Titled {
  readonly type: 'object'
  readonly required: readonly string[]
  readonly properties: Readonly<Record<string, Member>>
  readonly additionalProperties?: false
}

export interface ArrayShape extends Titled {
  readonly type: 'array'
  readonly items: ObjectShape | TextShape
  readonly maxItems: number
}

/** The shape of a request body: an object of text and int64, all that the checker supports. */
export type BodyShape = ObjectShape<TextShape | (IntegerShape & { readonly format: 'int64' })>

/** The type of the values that have a shape. */
export type ValueOf<Shape> = Shape extends { enum: readonly (infer Value)[] }
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

// A required name without a shape becomes a member that accepts no value.
type MembersOf<Shapes, Required extends string> = {
  [Name in Required]: Name extends keyof Shapes ? ValueOf<Shapes[Name]> : never
} & { -readonly [Name in Exclude<keyof Shapes, Required>]?: ValueOf<Shapes[Name]> }
