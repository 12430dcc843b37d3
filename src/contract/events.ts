import { json, type Operation } from './operation.ts'
import { pageLimits } from './parameters.ts'
import type { ArrayShape, ObjectShape, ValueOf } from './schema.ts'
import { StoredPlant } from './shapes.ts'

const eventTypes = ['plant.created', 'plant.replaced', 'plant.deleted'] as const

/** The media type of an endless stream of events. */
export const eventStreamType = 'text/event-stream'

/** The value of `after` that stands for the current end of the journal. */
export const latest = 'latest'

/** A change of a plant that succeeded. */
export const Event = {
  type: 'object',
  required: ['position', 'type', 'at', 'plant'],
  properties: {
    position: {
      type: 'string',
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      description: 'Names the place of the change in the journal. It means nothing else.',
      examples: ['5f3a9c01d2e4-1z-1-k9x2m'],
    },
    type: { type: 'string', enum: eventTypes, description: 'The kind of change.' },
    at: {
      type: 'string',
      format: 'date-time',
      description: 'When it was made: RFC 3339, in UTC, with milliseconds.',
      examples: ['2026-01-31T12:00:00.000Z'],
    },
    plant: StoredPlant,
  },
  title: 'Event',
  description:
    'A change that succeeded, with the plant as it was created, as it is after a replace, or as ' +
    'it was before a delete.',
  additionalProperties: false,
} as const satisfies ObjectShape

/** A page of events: a bare array. */
export const Events = {
  type: 'array',
  items: Event,
  title: 'Events',
  description: 'Changes in the order of their commits.',
  maxItems: pageLimits.max,
} as const satisfies ArrayShape

export type Event = ValueOf<typeof Event>

/** The operations on the journal. */
export const eventOperations = {
  listEvents: {
    method: 'GET',
    path: '/events',
    scope: 'plants:read',
    summary: 'Follow changes',
    description:
      'Returns every create, replace and delete that succeeded, oldest first, each once. Ask ' +
      '`after=latest` for the `Link`, list all plants, then follow that `Link`, to have a copy ' +
      'without a gap. With `Accept: text/event-stream` the response goes on for ever.',
    parameters: ['eventLimit', 'position', 'Last-Event-ID'],
    successes: {
      200: {
        description:
          'A page of changes, which may be empty. `Link` is always there: it is where to ask next.',
        body: json(Events),
        alternatives: [
          {
            mediaType: eventStreamType,
            description:
              'Server-sent events. First an `id` with the position where the stream begins; then ' +
              'for each change `id`, its position, `event`, its type, and `data`, the `Event` in ' +
              'one line. A comment comes at least every 15 s. A stream that begins while the ' +
              'service shuts down ends at once.',
            example:
              'id: 5f3a9c01d2e4-1y-0-0\nretry: 1000\n\n' +
              'id: 5f3a9c01d2e4-1z-1-k9x2m\nevent: plant.created\n' +
              'data: {"position":"5f3a9c01d2e4-1z-1-k9x2m","type":"plant.created",' +
              '"at":"2026-01-31T12:00:00.000Z","plant":{"id":1,"name":"Monstera deliciosa"}}\n\n',
          },
        ],
        headers: ['Link', 'Vary'],
        optionalHeaders: ['X-Accel-Buffering'],
      },
    },
    failures: [40400, 41000],
  },
} as const satisfies Record<string, Operation>
