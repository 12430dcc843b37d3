import { type Answer, type Guard, open, openGuard, toLost } from './attempt.ts'
import { toFailure, toPauseMs, toRetried } from './call.ts'
import { PlantStoreError } from './errors.ts'
import { buildStreamReader } from './event-stream.ts'
import { parse } from './json.ts'
import type { Link } from './options.ts'
import { iteratePages } from './pages.ts'
import { longestRetryAfterMs, pause } from './pauses.ts'
import type { EventsOptions, PlantEvent } from './types.ts'

/** The service sends something at least every 15 s, so a longer silence is a dead connection. */
const silenceMs = 40_000

interface Stream {
  /** The next events that arrive; undefined once the stream has ended. */
  read(): Promise<PlantEvent[] | undefined>
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

  async function load(): Promise<PlantEvent[]> {
    if (caller?.aborted) abort()
    caller?.addEventListener('abort', abort)
    for (;;) {
      end.signal.throwIfAborted()
      const answer = await readOnce()
      if (Array.isArray(answer)) {
        if (answer.length > 0) return answer
        continue
      }
      stream = undefined
      const failure = toRetried(answer)
      if (failure === undefined) throw toFailure(answer as Answer)
      const pauseMs = toPauseMs(answer, retry)
      const isHopeless = !wasConnected && retry >= link.retries
      if (isHopeless || pauseMs > longestRetryAfterMs) throw failure
      retry++
      await pause(pauseMs, end.signal)
    }
  }

  /** Events that arrive, or why there are none. */
  async function readOnce(): Promise<PlantEvent[] | Answer | PlantStoreError> {
    try {
      if (stream === undefined) {
        const opened = await openStream(link, position, end.signal, (next) => {
          position = next
        })
        if ('status' in opened) return opened
        stream = opened
        wasConnected = true
      }
      const events = await stream.read()
      if (events === undefined) return toLost(link, undefined, 'the stream ended')
      retry = 0
      return events
    } catch (cause) {
      end.signal.throwIfAborted()
      return cause instanceof PlantStoreError ? cause : toLost(link, undefined, cause)
    }
  }

  return iteratePages(load, () => {
    caller?.removeEventListener('abort', abort)
    end.abort()
    stream?.close()
  })
}

/** Opens a stream after a position, or answers why the service did not. */
async function openStream(
  link: Link,
  after: string | undefined,
  signal: AbortSignal,
  onPosition: (position: string) => void,
): Promise<Stream | Answer> {
  const guard = openGuard(signal)
  guard.arm(link.timeoutMs)
  try {
    const request = {
      method: 'GET',
      path: '/events',
      query: { after },
      headers: { Accept: 'text/event-stream' },
    }
    const response = await open(link, request, guard.signal)
    const { status, headers, body } = response
    const isStream = /^text\/event-stream\b/.test(headers.get('Content-Type') ?? '')
    if (status !== 200 || !isStream || body === null) {
      const text = await response.text()
      guard.close()
      return { status, headers, text }
    }
    return toStream(body, guard, onPosition)
  } catch (error) {
    guard.close()
    throw error
  }
}

function toStream(
  body: ReadableStream<Uint8Array>,
  guard: Guard,
  onPosition: (position: string) => void,
): Stream {
  const reader = body.getReader()
  const readBlocks = buildStreamReader()

  return {
    async read() {
      // A caller that takes its time between events is not silence.
      guard.arm(silenceMs)
      const { done, value } = await reader.read()
      guard.disarm()
      if (done) {
        guard.close()
        return undefined
      }
      const events: PlantEvent[] = []
      for (const { id, data } of readBlocks(value)) {
        if (data !== '') events.push(parse(data, (event: PlantEvent) => [event.plant]))
        if (id !== '') onPosition(id)
      }
      return events
    },
    close: guard.close,
  }
}
