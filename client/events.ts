import { notOurs, parse, pickPlant, readAs } from './json.ts'
import { listPlants } from './plant-calls.ts'
import { PlantStoreError, PositionGoneError } from './plant-store-error.ts'
import {
  type Answer,
  abortAfter,
  addChunk,
  joinSignals,
  type Link,
  readAnswer,
  run,
  toFailure,
  toFetched,
  toLost,
  toRetried,
  waitToRetry,
} from './request.ts'
import type { EventsOptions, MirrorChange, MirrorOptions, PlantEvent } from './types.ts'

/** A block of an event stream; '' for a field that it does not have. */
interface Block {
  readonly id: string
  readonly data: string
}

/** The end of the journal, after every change that is there now. */
export function readPosition(link: Link, signal: AbortSignal | undefined): Promise<string> {
  return readNext(link, 'latest', signal)
}

/** The position in the `Link` of a page. Throws a `PositionGoneError` if `after` is not kept. */
function readNext(link: Link, after: string, signal: AbortSignal | undefined): Promise<string> {
  return run(link, {
    request: { method: 'GET', path: '/events', query: { after, limit: 1 } },
    signal,
    read: (answer) =>
      readAs(answer, [200], () => {
        const [, position] = /[?&]after=([\w-]+)/.exec(answer.headers.get('Link') ?? '') ?? []
        if (position === undefined) throw notOurs()
        return position
      }),
  })
}

/**
 * All plants, then every change. A list takes time and plants change meanwhile, so it mixes several
 * moments, all of them before a position that is read afterwards. Once the changes from before the
 * list up to that position are applied to it, the copy is what the store was at that position.
 */
export async function* mirrorPlants(
  link: Link,
  { after, signal }: MirrorOptions,
): AsyncGenerator<MirrorChange, undefined> {
  let patient = link
  for (let start = after; ; start = undefined) {
    try {
      /** Positions that were read after the list, until one of them is reached. */
      let ends: string[] = []
      if (start === undefined) {
        start = await readPosition(patient, signal)
        patient = toPatient(link)
        yield { type: 'reset' }
        for await (const plant of listPlants(patient, { signal })) yield { type: 'plant', plant }
        ends = [await readPosition(patient, signal)]
      }
      let position = start
      if (ends.includes(position)) {
        yield { type: 'synced', position }
        ends = []
      }
      for await (const event of followStream(patient, { after: start, signal })) {
        patient = toPatient(link)
        const [end] = ends
        if (event !== undefined) {
          yield event
          position = event.position
        } else if (end !== undefined) {
          // The stream may never reach this position: an older release may have named one before
          // the first change, or a failover may have undone it, and with it what the list shows.
          await readNext(patient, end, signal)
          ends.push(await readPosition(patient, signal))
        }
        if (!ends.includes(position)) continue
        yield { type: 'synced', position }
        ends = []
      }
    } catch (error) {
      if (start === undefined) {
        // Reading the position or the list has failed after all retries, and would fail again,
        // unless the service is up and only waits for its store.
        if (!(error instanceof PlantStoreError) || error.error !== 50301) throw error
        patient = toPatient(link)
      } else if (!(error instanceof PositionGoneError)) throw error
      // Otherwise the changes since then are no longer kept, or it is a position of another store.
      signal?.throwIfAborted()
    }
  }
}

/** Retries without end. For work that has reached the service once: it will come back. */
function toPatient(link: Link): Link {
  return { ...link, retries: Number.POSITIVE_INFINITY }
}

/** Follows the journal. Reconnects from the last position, for as long as the caller reads. */
export async function* followEvents(
  link: Link,
  options: EventsOptions,
): AsyncGenerator<PlantEvent, undefined> {
  for await (const event of followStream(link, options)) if (event !== undefined) yield event
}

/** The events of the journal, and undefined for each comment, which comes every few seconds. */
async function* followStream(
  link: Link,
  { after, signal: caller }: EventsOptions,
): AsyncGenerator<PlantEvent | undefined, undefined> {
  let position = after
  let patient = link
  for (let retry = 0; ; retry++) {
    caller?.throwIfAborted()
    const headers = { Accept: 'text/event-stream' }
    const query = { after: position }
    const request = toFetched(link, { method: 'GET', path: '/events', query, headers })
    const connection = new AbortController()
    let failure: Answer | PlantStoreError = toLost(link, undefined, 'the stream ended')
    try {
      const opened = await openStream(link, request, caller, connection)
      if ('status' in opened) failure = opened
      else {
        patient = toPatient(link)
        let isFirst = true
        for await (const blocks of opened) {
          for (const { id, data } of blocks) {
            const isNew = data !== '' && id !== position
            if (id !== '') position = id
            // A service that ends each stream at once is asked after ever longer pauses.
            if (isNew || !isFirst) retry = 0
            caller?.throwIfAborted()
            if (isNew) yield toEvent(data)
            else if (id === '') yield undefined
          }
          isFirst = false
        }
      }
    } catch (cause) {
      caller?.throwIfAborted()
      if (cause instanceof PlantStoreError) throw cause
      failure = toLost(link, undefined, connection.signal.reason ?? cause)
    } finally {
      connection.abort()
    }
    const retried = toRetried(failure)
    if (retried === undefined) throw toFailure(failure as Answer)
    if (!(await waitToRetry(patient, failure, retried, retry, caller))) throw retried
  }
}

function toEvent(data: string): PlantEvent {
  try {
    const { position, type, at, plant } = parse(data, (value: PlantEvent) => [value.plant])
    const isOurs = [position, type, at].every((text) => typeof text === 'string')
    if (isOurs) return { position, type, at, plant: pickPlant(plant) }
  } catch {}
  // The same event would come again after a retry.
  throw new PlantStoreError('The event stream is not that of a Plant Store: check the url.')
}

/** Opens a stream, or returns the answer of a service that did not. */
async function openStream(
  link: Link,
  request: ReturnType<typeof toFetched>,
  caller: AbortSignal | undefined,
  connection: AbortController,
): Promise<AsyncGenerator<Block[]> | Answer> {
  const signal = joinSignals(caller, connection.signal)
  const timer = abortAfter(link.timeoutMs, connection)
  try {
    const response = await link.fetch(request.url, { ...request.init, signal })
    const isStream = /^text\/event-stream\b/.test(response.headers.get('Content-Type') ?? '')
    if (response.status !== 200 || !isStream || response.body === null) {
      return await readAnswer(response)
    }
    return readBlocks(link, response.body, connection)
  } finally {
    clearTimeout(timer)
  }
}

/** The blocks of a stream, as many at a time as arrive together. It may end inside a block. */
export async function* readBlocks(
  { silenceMs }: Link,
  body: ReadableStream<Uint8Array>,
  connection: AbortController,
): AsyncGenerator<Block[]> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let size = 0
  for (;;) {
    // A caller that takes its time between events is not silence.
    const timer = abortAfter(silenceMs, connection)
    const { done, value } = await reader.read().finally(() => clearTimeout(timer))
    if (done) return
    const text = decoder.decode(value, { stream: true })
    rest += text
    // A large event is not searched again with each of its chunks.
    const blocks = text.includes('\n') ? rest.split('\n\n') : [rest]
    rest = blocks.pop() ?? ''
    size = addChunk(blocks.length > 0 ? 0 : size, value)
    yield blocks.map(toBlock)
  }
}

function toBlock(text: string): Block {
  let id = ''
  let data = ''
  for (const line of text.split('\n')) {
    if (line.startsWith('id:')) id = line.slice(3).trim()
    if (line.startsWith('data:')) data += line.slice(5)
  }
  return { id, data }
}
