import { pageLimits } from './parameters.ts'
import type {
  ArrayShape,
  BodyShape,
  IntegerShape,
  ObjectShape,
  TextShape,
  ValueOf,
} from './schema.ts'

const id = {
  type: 'integer',
  format: 'int64',
  description:
    'Identification number of the plant: any integer from -9223372036854775808 to 9223372036854775807, exact to the last digit.',
  examples: [1],
} as const satisfies IntegerShape

const name = {
  type: 'string',
  description:
    'The name of the plant: any Unicode text, the empty one included, without NUL characters and without lone surrogates. Kept byte for byte.',
  examples: ['Monstera deliciosa'],
} as const satisfies TextShape

const tag = {
  type: 'string',
  description:
    'Tag that specifies the type of the plant: text under the same rules as the name. A plant stored without a tag is answered without this member.',
  examples: ['indoor'],
} as const satisfies TextShape

/** What a create answers: the plant as stored, without its id. */
export const Plant = {
  type: 'object',
  required: ['name'],
  properties: { name, tag },
  title: 'Plant',
  description: 'A plant, without its id.',
} as const satisfies BodyShape

const withId = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id, name, tag },
} as const

/** What a create takes. */
export const NewPlant = {
  ...withId,
  title: 'NewPlant',
  description: 'A plant to store. Members that are not named here are ignored.',
} as const satisfies BodyShape

/** A plant with its id, as the store holds it. */
export const StoredPlant = {
  ...withId,
  title: 'StoredPlant',
  description: 'A plant with its id, as it is stored.',
} as const satisfies ObjectShape

/** A page of plants: a bare array. */
export const StoredPlants = {
  type: 'array',
  items: StoredPlant,
  title: 'StoredPlants',
  description: 'Plants in ascending order of their ids.',
  maxItems: pageLimits.max,
} as const satisfies ArrayShape

/** The body of every answer that is not a success. */
export const ErrorBody = {
  type: 'object',
  required: ['error', 'message'],
  properties: {
    error: {
      type: 'integer',
      description: 'Numeric error value: the HTTP status times 100, plus a detail.',
      format: 'int32',
      minimum: 40000,
      maximum: 59999,
      examples: [40003],
    },
    message: {
      type: 'string',
      description:
        'Error message text: one English sentence that says what was wrong and what was expected.',
      examples: ['The member "name" is missing.'],
    },
  },
  title: 'Error',
  description: 'What went wrong. Programs switch on `error`, people read `message`.',
  additionalProperties: false,
} as const satisfies ObjectShape

/** What the health checks answer. */
export const Health = {
  type: 'object',
  required: ['status'],
  properties: {
    status: {
      type: 'string',
      const: 'ok',
      description: 'Always `ok`; anything else is an Error.',
    },
  },
  title: 'Health',
  description: 'The check passed.',
  additionalProperties: false,
} as const satisfies ObjectShape

export type Plant = ValueOf<typeof Plant>
export type NewPlant = ValueOf<typeof NewPlant>
export type StoredPlant = ValueOf<typeof StoredPlant>
export type StoredPlants = ValueOf<typeof StoredPlants>
export type ErrorBody = ValueOf<typeof ErrorBody>
export type Health = ValueOf<typeof Health>
