import { NewPlant, StoredPlant } from './shapes.ts'

/** Every request that the service sends to receivers, by the value of `Plant-Event`. */
export const webhooks = {
  'plant.created': {
    summary: 'A plant was created',
    description: 'Sent for every plant that was created, with the plant as it was created.',
    body: NewPlant,
  },
  'plant.replaced': {
    summary: 'A plant was replaced',
    description: 'Sent for every plant that was replaced, with the plant as it is afterwards.',
    body: StoredPlant,
  },
  'plant.deleted': {
    summary: 'A plant was deleted',
    description: 'Sent for every plant that was deleted, with the plant as it was before.',
    body: StoredPlant,
  },
} as const

export type WebhookType = keyof typeof webhooks

export const webhookTypes = Object.keys(webhooks) as readonly WebhookType[]

/** The value of `Plant-Event` in a request that only tests the receiver. */
export const testEvent = 'plant.test'

/** The headers of a webhook except those of HTTP itself; three come from Standard Webhooks. */
export const webhookHeaders = {
  'Plant-Event': {
    description: `What happened. \`${testEvent}\` marks a sample that the operator sends as a test.`,
    schema: { type: 'string' },
  },
  'webhook-id': {
    description:
      'The position of the change in the journal. It is the same on every attempt, so that a ' +
      'receiver can ignore a change that it has seen.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
  },
  'webhook-timestamp': {
    description: 'When this attempt was made, in seconds since 1970. Refuse one that is too old.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  'webhook-signature': {
    description:
      'Signatures separated by spaces: `v1,` and the HMAC-SHA256, in base64, of `webhook-id`, ' +
      '`webhook-timestamp` and the body, joined by dots. For 24 hours after the secret was ' +
      'rotated there are two. One that fits is enough. `Plant-Event` is not signed: TLS protects it.',
    schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/]+=*( v1,[A-Za-z0-9+/]+=*)?$' },
  },
} as const

/** The effect of each answer of a receiver. */
export const webhookAnswers = {
  '2XX': 'The change was received. The body is ignored.',
  410: 'The receiver is paused. The change is sent again when the operator resumes it.',
  default:
    'The change is sent again: up to ten times, after 1 s to 8 h, and not before the time of ' +
    '`Retry-After`. The same happens without an answer within 10 s. Redirects are not followed.',
} as const
