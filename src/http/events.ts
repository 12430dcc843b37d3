import { Failure } from '../contract/errors.ts'
import { eventStreamType, latest } from '../contract/events.ts'
import { jsonContentType } from '../contract/formats.ts'
import { pageLimits } from '../contract/parameters.ts'
import { toEventArray } from '../json/write.ts'
import type { JournalPage, Position, Store } from '../store/store.ts'
import type { Call, Handlers } from './calls.ts'
import type { EventStreams } from './event-streams.ts'
import { expectedPosition, readPosition } from './parameters.ts'

/** The handlers of the operations on the journal. */
export function buildEventHandlers(
  store: Store,
  streams: EventStreams,
): Pick<Handlers, 'listEvents'> {
  async function read(
    after: Position | typeof latest | undefined,
    limit: number,
  ): Promise<JournalPage> {
    const from = after === latest ? await store.journalEnd() : (after ?? 'oldest')
    const page = from === 'off' ? from : await store.readJournal(from, limit)
    if (page === 'gone') throw gone()
    if (page === 'off') throw switchedOff()
    return page
  }

  return {
    async listEvents({ parameters, baseUrl, mediaType, tokenId }) {
      const { eventLimit: limit = pageLimits.default } = parameters
      const headers = (position: Position) => ({
        Link: `<${baseUrl}/events?after=${position}&limit=${limit}>; rel="next"`,
        Vary: 'Accept',
      })
      if (mediaType === eventStreamType) {
        const { begin } = await read(toStart(parameters), 1)
        return { status: 200, headers: headers(begin), body: streams.reserve(begin, tokenId) }
      }
      const { events, end } = await read(parameters.position, limit)
      const body = {
        contentType: jsonContentType,
        get text() {
          return toEventArray(events)
        },
      }
      return { status: 200, headers: headers(end), body }
    },
  }
}

/** Where a stream begins: a client that comes back tells by its header. */
function toStart({
  position,
  'Last-Event-ID': lastId,
}: Call<'listEvents'>['parameters']): Position | typeof latest | undefined {
  if (lastId === undefined) return position
  const start = readPosition(lastId)
  if (start !== undefined) return start
  throw new Failure(40005, `The header Last-Event-ID must be ${expectedPosition}.`)
}

function gone(): Failure {
  return new Failure(
    41000,
    'This position is no longer kept, or is of another store. List the plants again, then follow from latest.',
  )
}

function switchedOff(): Failure {
  return new Failure(
    41000,
    'Another process has switched the journal off. Every process of a store needs the same JOURNAL_KEEP.',
  )
}
