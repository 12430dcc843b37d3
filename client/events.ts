import { untilAborted } from './aborts.ts'
import { pickPlant } from './answers.ts'
import { type Answer, type Guard, open, openGuard, toLost } from './attempt.ts'
import { toFailure, toPauseMs, toRetried } from './call.ts'
import { PlantStoreError } from './errors.ts'
import { type Block, buildStreamReader } from './event-stream.ts'
import { parse } from './json.ts'
import type { RequestOf, StreamTypeOf } from './operations.ts'
import type { Link } from './options.ts'
import { iteratePages } from './pages.ts'
import { maxRetryAfterMs, pause } from './pauses.ts'
import type { TimeLimit } from './time-limit.ts'
import type { EventsOptions, PlantEvent } from './types.ts'

interface Stream {
  /** The blocks that arrive next; undefined once the stream has ended. */
  read(): Promise<Block[] | undefined>
  close(): void
}

/** Follows the journal. Reconnects from the last position, for as long as the caller reads. */
export function followEvents(
  link: Link,
  { after, signal: caller }: EventsOptions,
): AsyncIterableIterator<PlantEvent> {
  const end = new AbortController()
  const abort = () => end.abort(caller?.reason)
  let position = after
  let stream: Stream | undefined
  let retry = 0
  let wasConnected = false

  async function load(): Promise<readonly PlantEvent[]> {
    if (caller?.aborted) abort()
    caller?.addEventListener('abort', abort)
    for (;;) {
      end.signal.throwIfAborted()
      const answer = await readOnce()
      if ('events' in answer) {
        if (answer.events.length > 0) return answer.events
        continue
      }
      stream = undefined
      const failure = toRetried(answer)
      if (failure === undefined) throw toFailure(answer as Answer)
      const pauseMs = toPauseMs(answer, retry)
      const isHopeless = !wasConnected && retry >= link.retries
      if (isHopeless || pauseMs > maxRetryAfterMs) throw failure
      retry++
      await pause(pauseMs, end.signal)
    }
  }

  /** Events that arrive, or why there are none. */
  async function readOnce(): Promise<{ events: PlantEvent[] } | Answer | PlantStoreError> {
    const isNew = stream === undefined
    try {
      if (stream === undefined) {
        const opened = await openStream(link, position, end.signal)
        if ('status' in opened) return opened
        stream = opened
        wasConnected = true
      }
      const blocks = await stream.read()
      if (blocks === undefined) return toLost(link, undefined, 'the stream ended')
      const events = blocks.flatMap(takeEvents)
      // A service that ends each stream at once is asked after ever longer pauses.
      if (!isNew || events.length > 0) retry = 0
      return { events }
    } catch (cause) {
      end.signal.throwIfAborted()
      if (cause instanceof PlantStoreError) throw cause
      return toLost(link, undefined, cause)
    }
  }

  /** The event of a block, if it has one. The position moves on to it. */
  function takeEvents({ id, data }: Block): PlantEvent[] {
    const isNew = data !== '' && id !== position
    if (id !== '') position = id
    return isNew ? [toEvent(data)] : []
  }

  return iteratePages(load, caller, () => {
    caller?.removeEventListener('abort', abort)
    end.abort()
    stream?.close()
  })
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

/** Opens a stream after a position, or returns the answer of a service that did not. */
async function openStream(
  link: Link,
  after: string | undefined,
  signal: AbortSignal,
): Promise<Stream | Answer> {
  const guard = openGuard(signal)
  guard.arm(link.answerLimit)
  try {
    const request = {
      method: 'GET',
      path: '/events',
      query: { after },
    } satisfies RequestOf<'listEvents'>
    const accept = { Accept: 'text/event-stream' satisfies StreamTypeOf<'listEvents'> }
    const response = await open(link, { ...request, headers: accept }, guard.signal)
    const { status, headers, body } = response
    const isStream = /^text\/event-stream\b/.test(headers.get('Content-Type') ?? '')
    if (status === 200 && isStream && body !== null) return toStream(body, guard, link.silenceLimit)
    const text = await untilAborted(response.text(), guard.signal)
    guard.close()
    return { status, headers, text }
  } catch (error) {
    guard.close()
    throw error
  }
}

function toStream(body: ReadableStream<Uint8Array>, guard: Guard, silenceLimit: TimeLimit): Stream {
  const reader = body.getReader()
  const readBlocks = buildStreamReader()

  return {
    async read() {
      // A caller that takes its time between events is not silence.
      guard.arm(silenceLimit)
      try {
        const { done, value } = await untilAborted(reader.read(), guard.signal)
        if (done) guard.close()
        return done ? undefined : readBlocks(value)
      } catch (error) {
        guard.close()
        throw error
      } finally {
        guard.disarm()
      }
    },
    close: guard.close,
  }
}
