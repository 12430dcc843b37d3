interface Parameter {
  readonly in: 'query' | 'header'
  readonly description: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly example: string | number
}

/** The bounds of a page. */
export const pageLimits = { default: 100, max: 1_000 }

const entityTags = 'a list of entity tags, or `*`'

/** What operations can be told beside their path and body. One that is given twice or wrongly is refused with 40005. */
export const parameters = {
  limit: {
    in: 'query',
    description: 'How many plants to answer at most.',
    schema: { type: 'integer', minimum: 1, maximum: pageLimits.max, default: pageLimits.default },
    example: 100,
  },
  after: {
    in: 'query',
    description: 'Answers the plants with a greater id than this one.',
    schema: { type: 'integer', format: 'int64' },
    example: 100,
  },
  tag: {
    in: 'query',
    description: 'Answers the plants with exactly this tag. `tag=` finds the empty tag.',
    schema: { type: 'string' },
    example: 'indoor',
  },
  'If-Match': {
    in: 'header',
    description: `Does it only if the plant has one of these states: ${entityTags}. Weak tags never match.`,
    schema: { type: 'string' },
    example: '"1d8f0c5a7b21"',
  },
  'If-None-Match': {
    in: 'header',
    description: `Does it only if the plant has none of these states: ${entityTags}.`,
    schema: { type: 'string' },
    example: '"1d8f0c5a7b21"',
  },
  'Idempotency-Key': {
    in: 'header',
    description:
      'Makes a retry safe: the same key with the same plant gets the first answer again, for 24 hours.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
    example: '8c3f2a5e-0d1b-4f6a-9c7e-2b4d6f8a0c1e',
  },
} as const satisfies Record<string, Parameter>

export type ParameterName = keyof typeof parameters
