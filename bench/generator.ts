/**
 * The load generator: each of its kept connections sends its next requests after the answers.
 * It runs as its own process, so that its cost is known and small.
 */
import { connect, type Socket } from 'node:net'
import { type AnswerReader, buildAnswerReader } from './answers.ts'
import { type Pattern, token } from './requests.ts'

/** Which requests to send to which port, for a time or up to a number. */
export interface Load {
  readonly port: number
  readonly connections: number
  readonly cycle: readonly Pattern[]
  /** How many requests a connection has on their way at once, 1 if not given. */
  readonly pipelined?: number
  readonly forMs?: number
  readonly requests?: number
}

export interface LoadResult {
  readonly requests: number
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The p99 of the GET requests alone. */
  readonly readP99Ms: number
  /** The CPU time of the generator itself. */
  readonly cpuMs: number
}

interface Connection {
  readonly socket: Socket
  sentAt: number
  /** The kind of the requests that wait for an answer, and their number. */
  template: Template | undefined
  waiting: number
  onAnswers: (template: Template, count: number) => void
}

/** A request that lacks only its id. */
interface Template {
  readonly isRead: boolean
  readonly parts: readonly string[]
  readonly nextId: () => number
  readonly reader: AnswerReader
}

/** Shorter than the 5 s after which Node.js closes idle connections. */
const maxIdleMs = 3_000
/** A system that has answered nothing for this long has failed. */
const maxSilenceMs = 30_000
const maxLatencies = 4_000_000
const latencies = new Float64Array(maxLatencies)
const readLatencies = new Float64Array(maxLatencies)
const readBuffer = Buffer.allocUnsafe(256 * 1024)
const connections = new Map<number, Connection[]>()
const usedAt = new Map<number, number>()
const templates = new Map<string, Template>()
const counters = new Map<string, number>()

async function drive(load: Load): Promise<LoadResult> {
  const { port, connections: count, cycle, pipelined = 1, forMs, requests } = load
  const pool = await openConnections(port, count)
  const turns = cycle.map((pattern) => findTemplate(port, pattern))
  const maxRequests = requests ?? maxLatencies
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const endsAt = startedAt + (forMs ?? Number.POSITIVE_INFINITY)
  let sent = 0
  let answered = 0
  let reads = 0
  let now = startedAt
  let answeredBefore = -1
  const watch = setInterval(() => {
    if (answered === answeredBefore) fail(`port ${port} does not answer`)
    answeredBefore = answered
  }, maxSilenceMs)
  await new Promise<void>((resolve) => {
    const send = (connection: Connection) => {
      const template = turns[sent % turns.length] as Template
      let text = ''
      for (let more = 0; more < pipelined; more++) {
        text += template.parts.join(String(template.nextId()))
      }
      sent += pipelined
      connection.template = template
      connection.waiting = pipelined
      connection.sentAt = now
      connection.socket.write(text, 'latin1')
    }
    for (const connection of pool) {
      connection.onAnswers = ({ isRead }, complete) => {
        now = performance.now()
        for (let more = 0; more < complete; more++) {
          latencies[answered++] = now - connection.sentAt
          if (isRead) readLatencies[reads++] = now - connection.sentAt
        }
        if (connection.template !== undefined) return
        if (now < endsAt && sent < maxRequests) send(connection)
        else if (answered === sent) resolve()
      }
    }
    for (const connection of pool) if (sent < maxRequests) send(connection)
  })
  clearInterval(watch)
  usedAt.set(port, now)
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    requests: answered,
    elapsedMs: now - startedAt,
    p50Ms: quantile(latencies.subarray(0, answered), 0.5),
    p99Ms: quantile(latencies.subarray(0, answered), 0.99),
    readP99Ms: quantile(readLatencies.subarray(0, reads), 0.99),
    cpuMs: (user + system) / 1_000,
  }
}

function quantile(values: Float64Array, share: number): number {
  return values.sort()[Math.floor(values.length * share)] ?? 0
}

async function openConnections(port: number, count: number): Promise<Connection[]> {
  const idleMs = performance.now() - (usedAt.get(port) ?? 0)
  if (idleMs > maxIdleMs) disconnect(port)
  const pool = connections.get(port) ?? []
  connections.set(port, pool)
  const missing = Array.from({ length: Math.max(0, count - pool.length) })
  pool.push(...(await Promise.all(missing.map(() => openConnection(port)))))
  return pool.slice(0, count)
}

function openConnection(port: number): Promise<Connection> {
  return new Promise((resolve) => {
    const onread = { buffer: readBuffer, callback: receive }
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    const connection: Connection = {
      socket,
      sentAt: 0,
      template: undefined,
      waiting: 0,
      onAnswers: () => {},
    }
    socket.on('connect', () => resolve(connection))
    socket.on('error', (error) => fail(`port ${port}: ${error.message}`))
    socket.on('close', () => leave(port, connection))

    // All connections share the buffer: each chunk is processed before the next is read.
    function receive(bytes: number, buffer: Uint8Array): boolean {
      const { template } = connection
      if (template === undefined) fail(`port ${port} sent an answer without a request`)
      const complete = template.reader(connection, buffer as Buffer, bytes)
      if (complete > connection.waiting) fail(`port ${port} sent an answer without a request`)
      connection.waiting -= complete
      if (connection.waiting === 0) connection.template = undefined
      if (complete > 0) connection.onAnswers(template, complete)
      return true
    }
  })
}

/** A system may close a connection that is idle, but not one that waits for an answer. */
function leave(port: number, connection: Connection): void {
  if (connection.template !== undefined) fail(`port ${port} closed a connection without an answer`)
  const pool = connections.get(port) ?? []
  connections.set(
    port,
    pool.filter((other) => other !== connection),
  )
}

/** Closes all connections to a port. */
function disconnect(port: number): void {
  for (const { socket } of connections.get(port) ?? []) socket.removeAllListeners('close').destroy()
  connections.delete(port)
}

/** Forgets the system on a port: another one on the same port begins with the first ids. */
function forget(port: number): void {
  disconnect(port)
  for (const known of [templates, counters]) {
    for (const key of known.keys()) if (key.startsWith(`${port} `)) known.delete(key)
  }
}

function findTemplate(port: number, pattern: Pattern): Template {
  const key = `${port} ${JSON.stringify(pattern)}`
  const template = templates.get(key) ?? buildTemplate(port, pattern)
  templates.set(key, template)
  return template
}

function buildTemplate(port: number, pattern: Pattern): Template {
  const { method, path, body, status, ids } = pattern
  const sampleBody = body?.replace('{id}', String(ids.first)) ?? ''
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    ...(body ? ['Content-Type: application/json', `Content-Length: ${sampleBody.length}`] : []),
  ]
  const text = `${head.join('\r\n')}\r\n\r\n${body ?? ''}`
  return {
    isRead: method === 'GET',
    parts: text.split('{id}'),
    nextId: buildIds(port, ids),
    reader: buildAnswerReader(status, fail),
  }
}

function buildIds(port: number, ids: Pattern['ids']): () => number {
  if (ids.kind === 'any') return () => ids.first + Math.floor(Math.random() * ids.count)
  const key = `${port} ${ids.first}`
  return () => {
    const id = counters.get(key) ?? ids.first
    counters.set(key, id + 1)
    return id
  }
}

function fail(reason: string): never {
  process.send?.({ failure: reason })
  process.disconnect?.()
  process.exit(1)
}

process.on('disconnect', () => process.exit())
process.on('message', async (message: Load | { forget: number }) => {
  if ('forget' in message) forget(message.forget)
  process.send?.('forget' in message ? {} : await drive(message))
})
