import { pageLimits } from './parameters.ts'
import {
  type ArrayShape,
  type BodyShape,
  type IntegerShape,
  int64Bounds,
  type ObjectShape,
  storablePattern,
  type TextShape,
  type ValueOf,
} from './schema.ts'

const id = {
  type: 'integer',
  format: 'int64',
  ...int64Bounds,
  description:
    'Identification number of the plant: any 64-bit signed integer, exact to the last digit.',
  examples: [1],
} as const satisfies IntegerShape

const name = {
  type: 'string',
  pattern: storablePattern,
  description:
    'The name of the plant: any Unicode text, including the empty string, without NUL ' +
    'characters and lone surrogates. It is stored byte for byte.',
  examples: ['Monstera deliciosa'],
} as const satisfies TextShape

const tag = {
  type: 'string',
  pattern: storablePattern,
  description:
    'Tag that specifies the type of the plant, under the same rules as the name. A plant that ' +
    'was stored without a tag is returned without this member.',
  examples: ['indoor'],
} as const satisfies TextShape

/** The answer to a create, and the body of a replace. */
export const Plant = {
  type: 'object',
  required: ['name'],
  properties: { name, tag },
  title: 'Plant',
  description: 'A plant without its id.',
} as const satisfies BodyShape

const withId = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id, name, tag },
} as const

/** The body of a create. */
export const NewPlant = {
  ...withId,
  title: 'NewPlant',
  description: 'A plant to store. Other members are ignored.',
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
  description: 'Plants in ascending order of id.',
  maxItems: pageLimits.max,
} as const satisfies ArrayShape

/** The body of every failure. */
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
        'Error message text: one English sentence that says what was wrong and what was ' +
        'expected. Its wording may change.',
      examples: ['The member "name" is missing.'],
    },
  },
  title: 'Error',
  description: 'Why the request failed. Programs switch on `error`; people read `message`.',
  additionalProperties: false,
} as const satisfies ObjectShape

/** The answer of the health checks. */
export const Health = {
  type: 'object',
  required: ['status'],
  properties: {
    status: {
      type: 'string',
      const: 'ok',
      description: 'Always `ok`: a failed check returns an `Error` instead.',
    },
  },
  title: 'Health',
  description: 'The check passed.',
  additionalProperties: false,
} as const satisfies ObjectShape

/** The answer of the readiness check. */
export const Readiness = {
  type: 'object',
  required: ['status'],
  properties: {
    status: Health.properties.status,
    writes: {
      type: 'string',
      const: 'disk full',
      description:
        'Only while the disk is full: writes are refused with 507, and reads go on. The service ' +
        'stays ready, so that a balancer does not take its reads away.',
    },
  },
  title: 'Readiness',
  description: 'The service is ready to serve.',
  additionalProperties: false,
} as const satisfies ObjectShape

export type Plant = ValueOf<typeof Plant>
export type NewPlant = ValueOf<typeof NewPlant>
export type StoredPlant = ValueOf<typeof StoredPlant>
export type StoredPlants = ValueOf<typeof StoredPlants>
export type ErrorBody = ValueOf<typeof ErrorBody>
export type Health = ValueOf<typeof Health>
export type Readiness = ValueOf<typeof Readiness>
