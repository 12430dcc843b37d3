import { type Static, Type } from 'typebox'
import { pageLimits } from './parameters.ts'
import { isKeepable } from './text.ts'

const expectedText = 'a string without NUL characters and without lone surrogates'

// PostgreSQL cannot keep a NUL character or a lone surrogate, so no engine is asked to.
function text(options: { description: string; examples: string[] }) {
  return Type.Refine(Type.String(options), isKeepable, () => `must be ${expectedText}`)
}

const id = Type.BigInt({
  description:
    'Identification number of the plant: any integer from -9223372036854775808 to 9223372036854775807, exact to the last digit.',
  examples: [1],
})
const name = text({
  description:
    'The name of the plant: any Unicode text, the empty one included, without NUL characters and without lone surrogates. Kept byte for byte.',
  examples: ['Monstera deliciosa'],
})
const tag = Type.Optional(
  text({
    description:
      'Tag that specifies the type of the plant: text under the same rules as the name. A plant stored without a tag is answered without this member.',
    examples: ['indoor'],
  }),
)

/** What a create answers: the plant as stored, without its id. */
export const Plant = Type.Object(
  { name, tag },
  { title: 'Plant', description: 'A plant, without its id.' },
)

/** What a create takes. */
export const NewPlant = Type.Object(
  { id, name, tag },
  {
    title: 'NewPlant',
    description: 'A plant to store. Members that are not named here are ignored.',
  },
)

/** A plant with its id, as the store holds it. */
export const StoredPlant = Type.Object(
  { id, name, tag },
  { title: 'StoredPlant', description: 'A plant with its id, as it is stored.' },
)

/** A page of plants: a bare array. */
export const StoredPlants = Type.Array(StoredPlant, {
  title: 'StoredPlants',
  description: 'Plants in ascending order of their ids.',
  maxItems: pageLimits.most,
})

/** The body of every answer that is not a success. */
export const ErrorBody = Type.Object(
  {
    error: Type.Integer({
      description: 'Numeric error value: the HTTP status times 100, plus a detail.',
      format: 'int32',
      minimum: 40000,
      maximum: 59999,
      examples: [40003],
    }),
    message: Type.String({
      description:
        'Error message text: one English sentence that says what was wrong and what was expected.',
      examples: ['The member "name" is missing.'],
    }),
  },
  {
    title: 'Error',
    description: 'What went wrong. Programs switch on `error`, people read `message`.',
    additionalProperties: false,
  },
)

/** What the health checks answer. */
export const Health = Type.Object(
  { status: Type.Literal('ok', { description: 'Always `ok`; anything else is an Error.' }) },
  { title: 'Health', description: 'The check passed.', additionalProperties: false },
)

export type Plant = Static<typeof Plant>
export type NewPlant = Static<typeof NewPlant>
export type StoredPlant = Static<typeof StoredPlant>
export type StoredPlants = Static<typeof StoredPlants>
export type ErrorBody = Static<typeof ErrorBody>
export type Health = Static<typeof Health>
