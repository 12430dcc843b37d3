import { setTimeout as sleep } from 'node:timers/promises'
import { releaseAfterTest } from '../../support/release.ts'
import { type Connections, openClient, type Result, toContent } from './client.ts'
import { parsePlants } from './final-state.ts'
import {
  type Attempt,
  type History,
  type Kind,
  type Life,
  nextLife,
  noteAttempt,
  type Outcome,
} from './history.ts'

export interface LoadOptions {
  /** The services. Each request goes to the next one. */
  readonly urls: readonly string[]
  readonly token: string
  readonly writers: number
  readonly readers: number
  readonly connections?: Connections
  /** The pause of a client between two requests. */
  readonly thinkMs?: number
}

/** The tag of plants that were created with a key and never changed. */
export const keyedTag = 'keyed'

/** The pause after a refusal, so that a service that is away does not fill the history. */
const pauseMs = 50
/** The share of lives whose plant is read after every step, to see stale contents. */
const lookingShare = 0.25
/** The share of the time in which an export is read, and how many of its plants are noted. */
const exportShare = 0.05
const notedPlants = 1_000
/** Readers prefer the plants that were acknowledged last, to see stale contents. */
const recentPlants = 20

/** Starts clients that write, each with ids of its own, and clients that read. */
export function startLoad(history: History, options: LoadOptions) {
  const { urls, token, writers, readers, connections, thinkMs = 0 } = options
  const client = openClient(token, connections)
  let isStopped = false
  let requests = 0
  let nextExportAt = 0

  function nextUrl(): string {
    return `${urls[requests++ % urls.length]}/plants`
  }

  async function write(): Promise<void> {
    while (!isStopped) {
      await live(nextLife(history))
      await think()
    }
  }

  async function think(): Promise<void> {
    if (thinkMs > 0) await sleep(thinkMs)
  }

  async function live(life: Life): Promise<void> {
    const looks = readers > 0 && Math.random() < lookingShare
    while (life.steps[0] !== undefined) {
      const attempt = await take(life.id, life.steps[0])
      // A conflict is an answer, and does not change when the request is sent again.
      const isAway = attempt.status === undefined || attempt.status >= 500
      const isRetried = attempt.kind === 'keyed create' && isAway
      if (attempt.outcome === 'ok') life.steps.shift()
      else await sleep(pauseMs)
      if (attempt.outcome === 'ok' && looks) await readPlant(life.id)
      if (isRetried && isStopped) history.unfinished.push(life)
      if (attempt.outcome !== 'ok' && (!isRetried || isStopped)) return
    }
  }

  async function take(id: bigint, kind: Kind): Promise<Attempt> {
    const earlier = history.attemptsById.get(id) ?? []
    const isFirst = kind === 'create' || kind === 'keyed create' || kind === 'keyed again'
    const text = `plant ${id}, ${isFirst ? 'created' : `change ${earlier.length}`} ü 🌱`
    const content = kind === 'delete' ? undefined : text
    const attempt = noteAttempt(history, { id, kind, content })
    const result = await send(attempt)
    attempt.outcome = toOutcome(result)
    attempt.answeredAt = history.clock()
    if (typeof result === 'string') return attempt
    attempt.status = result.status
    attempt.etag = result.headers.etag
    if (attempt.outcome !== 'ok') return attempt
    history.acknowledgements++
    attempt.answered = kind === 'delete' ? undefined : toContent(id, result.body)
    if (!earlier.some(({ outcome }) => outcome === 'ok')) history.acknowledged.push(id)
    return attempt
  }

  function send({ id, kind, content }: Attempt): Promise<Result> {
    if (kind === 'delete') return client.send(`${nextUrl()}/${id}`, { method: 'DELETE' })
    const body = `{"id":${id},"name":${JSON.stringify(content)}}`
    if (kind === 'replace') return client.send(`${nextUrl()}/${id}`, { method: 'PUT', body })
    if (kind === 'create') return client.send(nextUrl(), { method: 'POST', body })
    const headers = { 'Idempotency-Key': `key-${id}` }
    const tagged = `${body.slice(0, -1)},"tag":"${keyedTag}"}`
    return client.send(nextUrl(), { method: 'POST', headers, body: tagged })
  }

  async function read(): Promise<void> {
    while (!isStopped) {
      const id = pickAcknowledged()
      if (id === undefined) await sleep(pauseMs)
      else if (performance.now() >= nextExportAt) await readExport()
      else await readPlant(id)
      await think()
    }
  }

  function pickAcknowledged(): bigint | undefined {
    const { acknowledged } = history
    const among = Math.random() < 0.8 ? recentPlants : acknowledged.length
    return acknowledged.at(-1 - Math.floor(Math.random() * Math.min(among, acknowledged.length)))
  }

  async function readPlant(id: bigint): Promise<void> {
    const sentAt = history.clock()
    const result = await client.send(`${nextUrl()}/${id}`)
    const answeredAt = history.clock()
    if (typeof result === 'string') await sleep(pauseMs)
    else if (result.status === 200 || result.status === 404) {
      const content = result.status === 200 ? toContent(id, result.body) : undefined
      history.reads.push({ id, sentAt, answeredAt, content })
    }
  }

  /** Reads every plant as it is at one moment. */
  async function readExport(): Promise<void> {
    const beganAt = performance.now()
    nextExportAt = Number.POSITIVE_INFINITY
    const ids = history.acknowledged.slice(-notedPlants)
    const sentAt = history.clock()
    const result = await client.send(`${nextUrl()}.ndjson`)
    const answeredAt = history.clock()
    if (typeof result !== 'string' && result.status === 200) {
      const plants = new Map(parsePlants(result.body))
      for (const id of ids) history.reads.push({ id, sentAt, answeredAt, content: plants.get(id) })
      history.exports++
    } else await sleep(pauseMs)
    nextExportAt = performance.now() + (performance.now() - beganAt) / exportShare
  }

  const running = Promise.all([
    ...Array.from({ length: writers }, write),
    ...Array.from({ length: readers }, read),
  ])
  /** Stops when the requests in flight are answered. */
  async function stop(): Promise<void> {
    isStopped = true
    await running
    client.close()
  }

  // The load of a failed test does not wait for answers, which may never come.
  releaseAfterTest(async () => {
    isStopped = true
    client.close()
    await running
  })
  return { stop }
}

function toOutcome(result: Result): Outcome {
  if (result === 'not sent') return 'refused'
  if (result === 'not answered') return 'unknown'
  if (result.status < 300) return 'ok'
  // By the contract, every other answer means that nothing was stored.
  return result.status === 500 || result.status === 504 ? 'unknown' : 'refused'
}
