import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Broken, type Expected, expect, type Heard, toJson } from './expect.ts'
import { type Answer, type Request, send, toBytes } from './wire.ts'

/** A request to the server under test. It has the token unless `as` says otherwise. */
export interface Call extends Request {
  readonly as?: 'nobody'
  /** The plants that a success stores: they are deleted at the end. */
  readonly makes?: readonly bigint[]
  readonly until?: ((answer: Answer) => boolean) | undefined
}

export const json = { 'Content-Type': 'application/json' }

/** The JSON of a new plant. */
export const newFern = (id: bigint) => `{"id":${id},"name":"Fern"}`

export function get(id: bigint, headers: Call['headers'] = {}): Call {
  return { path: `/plants/${id}`, headers }
}

export function put(id: bigint, body: string, headers: Call['headers'] = {}): Call {
  const path = `/plants/${id}`
  return { method: 'PUT', path, headers: { ...json, ...headers }, body, makes: [id] }
}

export function remove(id: bigint, headers: Call['headers'] = {}): Call {
  return { method: 'DELETE', path: `/plants/${id}`, headers }
}

/** A plant to create. Texts that are not given belong to this run alone. */
export interface Fields {
  readonly id: bigint
  readonly name?: string
  readonly tag?: string
}

/** The server under test, as one run sees it. */
export type Server = ReturnType<typeof openRun>['server']

interface RunOptions {
  readonly base: URL
  readonly token: string
  readonly signal: AbortSignal
  readonly timeouts: RunTimeouts
}

/** How long one answer may take, and the clean-up. */
export interface RunTimeouts {
  readonly answerMs: number
  readonly cleanUpMs: number
}

/** How many requests one run may send, and how many at a time when it cleans up. */
const maxRequests = 1_000
const deletesAtOnce = 8
/** How often a request is repeated that the server was too busy for. */
const maxRepeats = 3
const maxPauseSeconds = 3

/** Begins a run against a server. Nothing is sent yet. */
export function openRun({ base, token, signal, timeouts }: RunOptions) {
  const mark = `conformance-${randomBytes(6).toString('hex')}`
  // An odd id beyond 2^53 is never a double, so one that is rounded anywhere shows.
  let nextId = 2n ** 61n + (randomBytes(8).readBigUInt64BE() >> 4n) * 2n + 1n
  let texts = 0
  let requests = 0
  let hasDeleted = false
  /** Ids that may have a plant of this run, and those of them for which a request succeeded. */
  const made = new Set<bigint>()
  const stored = new Set<bigint>()
  /** Ids that are not random. */
  const fixed = new Set<bigint>()

  async function sendOnce(call: Call, stop: AbortSignal): Promise<Heard> {
    requests++
    const authorization = { Authorization: `Bearer ${token}` }
    const headers = { ...(call.as !== 'nobody' && authorization), ...call.headers }
    const sent = describe(call)
    const bytes = toBytes({ ...call, headers }, base)
    // Until it is answered, nobody knows what is stored.
    for (const id of call.makes ?? []) made.add(id)
    const options = { timeoutMs: timeouts.answerMs, signal: stop, until: call.until }
    const answer = await send(base, bytes, options)
    if (answer === undefined) {
      const got = `a closed connection, or nothing within ${timeouts.answerMs / 1000} s`
      throw new Broken(sent, 'an answer', got)
    }
    if (call.method === 'DELETE' && answer.status === 204) hasDeleted = true
    return { ...answer, sent }
  }

  /** A success may have stored these plants, and a refusal has not: other requests may have. */
  function settle(ids: readonly bigint[], status: number): void {
    for (const id of ids) {
      if (status < 300) {
        stored.add(id)
        made.add(id)
      } else if (status >= 400 && status < 500 && !stored.has(id)) made.delete(id)
    }
  }

  /** Sends a request, and waits and repeats it if the server is too busy. */
  async function sendUntilServed(call: Call, stop: AbortSignal): Promise<Heard> {
    for (let repeats = 0; ; repeats++) {
      const heard = await sendOnce(call, stop)
      const seconds = Number(heard.headers.get('retry-after') ?? Number.NaN)
      const isBusy = (heard.status === 429 || heard.status === 503) && seconds >= 0
      if (!isBusy || repeats === maxRepeats) return heard
      await sleep(Math.min(seconds, maxPauseSeconds) * 1_000, undefined, { signal: stop })
    }
  }

  async function ask(call: Call): Promise<Heard> {
    if (requests >= maxRequests) throw new Error(`more than ${maxRequests} requests`)
    const heard = await sendUntilServed(call, signal)
    settle(call.makes ?? [], heard.status)
    return heard
  }

  async function isThere(id: bigint): Promise<boolean> {
    return (await ask(get(id))).status === 200
  }

  /** Ids that nobody uses. They follow each other, with one between any two. */
  async function newIds(count: number, toOther = (id: bigint) => id): Promise<readonly bigint[]> {
    const ids = Array.from({ length: count }, (_, index) => toOther(nextId + BigInt(index) * 2n))
    nextId += BigInt(count) * 2n
    const taken = await Promise.all(ids.map(isThere))
    if (!taken.includes(true)) return ids
    throw new Broken(`GET /plants/${ids[taken.indexOf(true)]}`, 'no plant at a random id', 'one')
  }

  /** A text that is unique to this run: in the names of its plants, and as a tag. */
  const newText = () => `${mark}-${++texts}`

  /** Sends a create with this body. */
  function post(id: bigint, body: string | Buffer, more: Partial<Call> = {}): Promise<Heard> {
    const headers = { ...json, ...more.headers }
    return ask({ method: 'POST', path: '/plants', makes: [id], ...more, headers, body })
  }

  const server = {
    ask,
    /** Sends a request and requires its answer. */
    async expect(call: Call, expected: Expected): Promise<Heard> {
      const heard = await ask(call)
      expect(heard, expected)
      return heard
    },
    post,
    /** Creates a plant, and requires that it works. */
    async create(fields: Partial<Fields> = {}, more: Partial<Call> = {}) {
      const [first] = fields.id === undefined ? await newIds(1) : [fields.id]
      const plant = { name: newText(), ...fields, id: first as bigint }
      const heard = await post(plant.id, toJson(plant), more)
      expect(heard, { status: 200 })
      return { ...plant, heard }
    },
    newIds,
    /** One such id, or another random one that is made of it. */
    newId: async (toOther?: (id: bigint) => bigint) => (await newIds(1, toOther))[0] as bigint,
    /**
     * Whether a certain id is free or has a plant of this run, on a server that has shown that it
     * can tell.
     */
    async isFree(id: bigint): Promise<boolean> {
      const { id: own } = await server.create()
      const isFree = (await isThere(own)) && !(await isThere(id))
      if (isFree) fixed.add(id)
      return fixed.has(id)
    },
    newText,
    token,
  }

  /** Deletes a plant, and resolves with whether it may still be there. */
  async function cleanUpOne(id: bigint, stop: AbortSignal): Promise<boolean> {
    try {
      if (fixed.has(id)) {
        // Somebody else may have stored a plant at an id that is not random.
        const { body } = await sendUntilServed(get(id), stop)
        if (!body.toString().includes(mark)) return false
      }
      const { status } = await sendUntilServed(remove(id), stop)
      return status !== 204 && !(status === 404 && hasDeleted)
    } catch {
      return true
    }
  }

  /** Deletes what the run has stored. Resolves with the ids that remain. */
  async function cleanUp(): Promise<readonly bigint[]> {
    const stop = AbortSignal.timeout(timeouts.cleanUpMs)
    const waiting = [...made].values()
    const left: bigint[] = []
    async function work(): Promise<void> {
      for (const id of waiting) if (await cleanUpOne(id, stop)) left.push(id)
    }
    await Promise.all(Array.from({ length: deletesAtOnce }, work))
    return left.sort((a, b) => (a < b ? -1 : 1))
  }

  return { server, requests: () => requests, cleanUp }
}

const maxShown = 200

/** Describes a request, without its token. */
function describe({ method = 'GET', path, headers = {}, body, version = '', as }: Call): string {
  const fields = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value.slice(0, maxShown)}`),
  )
  if (as === 'nobody') fields.unshift('without a token')
  const shown = fields.length === 0 ? '' : ` (${fields.join('; ')})`
  const text = (body ?? '').toString().slice(0, maxShown)
  return `${method} ${path.slice(0, maxShown)}${version && ` ${version}`}${shown} ${text}`.trim()
}
