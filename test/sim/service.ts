/**
 * A process of the service: the real store on the simulated server, the real reader of the journal
 * and the real sender of webhooks. HTTP is simulated: the requests of a mirror, and their way.
 */
import { Failure } from '../../src/contract/errors.ts'
import { buildReader, type JournalReader } from '../../src/journal/reader.ts'
import type { JournalEvent } from '../../src/journal/row.ts'
import { toEventJson } from '../../src/json/plant-json.ts'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { buildPostgresStore } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'
import { openSender, type SenderSettings } from '../../src/webhooks/sender.ts'
import { server } from './postgres.ts'
import { type Actor, world } from './world.ts'

export type Service = Awaited<ReturnType<typeof startService>>

/** How many plants a page of the list has: few, so that a list takes several requests. */
const pagePlants = 2
const commentMs = 15_000

/** Opens a store, as the current actor. */
export async function openStore(): Promise<Store> {
  const events = { onLost() {}, onFound() {}, onNew() {} }
  const url = 'postgres://sim:sim@sim/sim?sslmode=disable'
  return judge(buildPostgresStore(await openPrimary(url, events, { startTimeoutMs: 60_000 })))
}

/** Starts a process, as the current actor. */
export async function startService(settings: Partial<SenderSettings>) {
  const store = await openStore()
  const reader = buildReader(store)
  const logger = { debug() {}, info() {}, warn() {} }
  const sender = openSender({ store, reader, logger, settings })
  const handle = buildHandler(store, reader)
  return {
    actor: world().actor(),
    store,
    ...buildConnections(world().actor(), handle),
    /** Ends it as SIGTERM does. */
    async close(): Promise<void> {
      await sender.close()
      await store.close()
    },
  }
}

/** Judges every position that the store tells. */
function judge(store: Store): Store {
  return {
    ...store,
    async readJournal(after, limit) {
      const page = await store.readJournal(after, limit)
      server().truth.checkPage(after, page)
      return page
    },
    async journalEnd() {
      const check = server().truth.askEnd()
      const position = await store.journalEnd()
      check(position)
      return position
    },
  }
}

interface Answer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  /** Sends more until the client leaves. */
  readonly stream?: (write: (text: string) => void, left: AbortSignal) => Promise<void>
}

type Handle = (url: URL, accept: string | null) => Promise<Answer>

function buildHandler(store: Store, reader: JournalReader): Handle {
  async function listPlants(after: string | null): Promise<Answer> {
    const from = after === null ? undefined : BigInt(after)
    const { plants } = await store.listPlants({ after: from, limit: pagePlants } as never)
    const last = plants.length === pagePlants ? plants.at(-1) : undefined
    const headers = last && { Link: `</plants?after=${last.id}>; rel="next"` }
    const list = plants.map(({ id, name }) => `{"id":${id},"name":${JSON.stringify(name)}}`)
    return { status: 200, headers: { ...headers }, text: `[${list.join()}]` }
  }

  async function listEvents(after: string, limit: number, isStream: boolean): Promise<Answer> {
    const from = after === 'latest' ? await store.journalEnd() : after
    const page = await store.readJournal(from, isStream ? 1 : limit)
    if (typeof page === 'string') throw new Failure(41000, 'The position is not kept.')
    const { begin, end } = page
    if (!isStream) {
      const headers = { Link: `</events?after=${end}&limit=${limit}>; rel="next"` }
      return { status: 200, headers, text: `[${page.events.map(toEventJson).join()}]` }
    }
    return {
      status: 200,
      headers: { 'Content-Type': 'text/event-stream' },
      text: `id: ${begin}\n\n`,
      async stream(write, left) {
        const comments = setInterval(() => write(':\n\n'), commentMs)
        try {
          for await (const read of reader.follow(begin, left)) {
            if (typeof read === 'string') return
            write(read.events.map(toFrame).join(''))
          }
        } finally {
          clearInterval(comments)
        }
      },
    }
  }

  return async ({ pathname, searchParams }, accept) => {
    try {
      if (pathname === '/plants') return await listPlants(searchParams.get('after'))
      const limit = Number(searchParams.get('limit') ?? 20)
      const isStream = accept === 'text/event-stream'
      return await listEvents(searchParams.get('after') ?? 'oldest', limit, isStream)
    } catch (error) {
      if (!(error instanceof Failure)) {
        world().fail(`a request fails: ${error instanceof Error ? error.stack : error}`)
        throw error
      }
      const { number, message } = error
      const text = JSON.stringify({ error: number, message })
      return { status: Math.floor(number / 100), headers: { 'Retry-After': '1' }, text }
    }
  }
}

function toFrame(event: JournalEvent): string {
  return `id: ${event.position}\ndata: ${toEventJson(event)}\n\n`
}

/** The way between clients and a process: requests and answers take time, and may be lost. */
function buildConnections(process: Actor, handle: Handle) {
  const { plan, actor } = world()
  const { weather } = server()
  const open = new Set<() => void>()

  function request(url: URL, accept: string | null, signal: AbortSignal | null | undefined) {
    const client = actor()
    const left = new AbortController()
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    const encoder = new TextEncoder()
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined
    let lastAt = 0
    let isOver = false
    const body = new ReadableStream<Uint8Array>({
      start(own) {
        controller = own
      },
      cancel: leave,
    })

    function leave(): void {
      if (isOver) return
      isOver = true
      open.delete(reset)
      plan(weather.travelMs(), 'a client leaves', () => left.abort(), process)
    }

    function reset(): void {
      if (isOver) return
      leave()
      const error = new TypeError('fetch failed')
      const fail = () => {
        reject(error)
        controller?.error(error)
      }
      plan(weather.travelMs(), 'a connection is reset', fail, client)
    }

    /** Brings something to the client, after what was sent before it. */
    function deliver(label: string, run: () => void): void {
      lastAt = Math.max(lastAt, world().now() + weather.travelMs())
      plan(lastAt - world().now(), label, () => (isOver ? undefined : run()), client)
    }

    async function answer(): Promise<void> {
      const { status, headers, text, stream } = await handle(url, accept)
      if (weather.isLost()) return reset()
      deliver('a response arrives', () => {
        resolve(new Response(body, { status, headers }))
        controller?.enqueue(encoder.encode(text))
        if (stream !== undefined) return
        controller?.close()
        open.delete(reset)
      })
      if (stream === undefined) return
      const write = (piece: string) =>
        deliver('events arrive', () => controller?.enqueue(encoder.encode(piece)))
      await stream(write, left.signal).catch(() => {})
      reset()
    }

    open.add(reset)
    signal?.addEventListener('abort', () => {
      leave()
      reject(signal.reason)
      controller?.error(signal.reason)
    })
    if (process.state === 'dead') reset()
    else plan(weather.travelMs(), `GET ${url.pathname}${url.search}`, () => void answer(), process)
    return promise
  }

  return {
    /** Sends a request from a client to this process. */
    fetch: (...[input, init]: Parameters<typeof fetch>) =>
      request(new URL(String(input)), new Headers(init?.headers).get('Accept'), init?.signal),
    /** Resets the connections of clients. */
    reset(): void {
      for (const reset of [...open]) reset()
    },
  }
}
