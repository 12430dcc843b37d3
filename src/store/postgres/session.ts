import { connect, type Socket } from 'node:net'
import postgres from 'postgres'
import { isLoss } from './failures.ts'

export type Sql = postgres.Sql

/** Where one server listens. */
export interface Host {
  readonly host: string
  readonly port: number
}

export interface SessionOptions {
  readonly url: string
  readonly at: Host
  /** Told once, when the server cannot be used any more. */
  readonly onLost: (reason: unknown) => void
}

/** Open connections to one server that was the primary when they were made. */
export interface Session {
  readonly reader: Sql
  /** One connection each, and open: whatever fails on them may have been done. */
  readonly writers: readonly Sql[]
  /** One more connection, for whoever needs one alone, and ends it. Tells when it was closed, by whomever. */
  openAlone(onClosed: () => void): Sql
  /** Whether it was lost or ended. */
  isOver(): boolean
  /** How often the server has warned: a commit that it did not replicate is a warning, and not an error. */
  warnings(): number
  /** Lets the statements under way finish for so long, then cuts every connection. */
  end(graceMs: number): Promise<void>
}

export const writerCount = 2
const readerCount = 6
const attemptTimeoutMs = 2_000
const beatMs = 250
const beatTimeoutMs = 1_000

/** Opens a session, or throws what is wrong with the server. */
export async function openSession({ url, at, onLost }: SessionOptions): Promise<Session> {
  const sockets = new Set<Socket>()
  let warnings = 0
  let isOver = false
  let beatTimer: NodeJS.Timeout | undefined
  const noSocketIsLeft = Promise.withResolvers<void>()

  function openPool(max: number, onclose: () => void): Sql {
    return postgres(url, {
      ...at,
      max,
      fetch_types: false,
      idle_timeout: 0,
      max_lifetime: null,
      connect_timeout: attemptTimeoutMs / 1000,
      connection: { application_name: 'plant-store' },
      onclose,
      onnotice: ({ severity }) => {
        if (severity === 'WARNING') warnings++
      },
      // Sockets of ours, so that they can be cut: a server that hangs would keep them open for ever.
      socket: () => openSocket(at, sockets, noSocketIsLeft.resolve),
    } as postgres.Options<Record<string, never>>)
  }

  function lose(reason: unknown): void {
    if (isOver) return
    isOver = true
    clearTimeout(beatTimer)
    onLost(reason)
  }

  async function beat(): Promise<void> {
    try {
      await withTimeout(requirePrimary(watcher), beatTimeoutMs)
      if (!isOver) beatTimer = setTimeout(beat, beatMs).unref()
    } catch (error) {
      lose(error)
    }
  }

  async function end(graceMs: number): Promise<void> {
    isOver = true
    clearTimeout(beatTimer)
    const ended = Promise.all(pools.map((pool) => pool.end({ timeout: graceMs / 1000 })))
    // A pool that lost its server waits out the time, though nothing can come any more.
    const gone = sockets.size === 0 ? Promise.resolve() : noSocketIsLeft.promise
    await withTimeout(Promise.race([ended, gone]), graceMs + 100).catch(() => {})
    for (const socket of sockets) socket.destroy()
  }

  const onclose = () => lose(new Error('a connection was closed'))
  const watcher = openPool(1, onclose)
  const writers = Array.from({ length: writerCount }, () => openPool(1, onclose))
  const reader = openPool(readerCount, onclose)
  const pools = [watcher, ...writers, reader]
  try {
    await withTimeout(requirePrimary(watcher), attemptTimeoutMs)
    await withTimeout(Promise.all([...writers, reader].map(requirePrimary)), attemptTimeoutMs)
    beatTimer = setTimeout(beat, beatMs).unref()
    const openAlone = (onClosed: () => void) => openPool(1, onClosed)
    return { reader, writers, openAlone, isOver: () => isOver, warnings: () => warnings, end }
  } catch (error) {
    await end(0)
    throw error
  }
}

/**
 * Runs statements in one transaction, on a pool of one connection. Not with the driver's own `begin`: when the
 * connection is lost in the middle, that one writes to the socket that is gone, and ends the process.
 */
export async function inTransaction<Value>(sql: Sql, run: () => Promise<Value>): Promise<Value> {
  await sql`BEGIN`
  try {
    const value = await run()
    await sql`COMMIT`
    return value
  } catch (error) {
    // With the connection, the transaction is gone as well.
    if (!isLoss(error)) await sql`ROLLBACK`
    throw error
  }
}

/** The server is a standby: it cannot take writes. */
export class NotPrimary extends Error {
  constructor() {
    super('the server is a standby')
    this.name = 'NotPrimary'
  }
}

async function requirePrimary(sql: Sql): Promise<void> {
  const [row] = await sql<[{ standby: boolean }]>`SELECT pg_is_in_recovery() AS standby`
  if (row.standby) throw new NotPrimary()
}

function openSocket(
  { host, port }: Host,
  sockets: Set<Socket>,
  onNoneLeft: () => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    sockets.add(socket)
    socket.setNoDelay(true)
    // The driver takes the name for TLS from here.
    Object.assign(socket, { host, port })
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) onNoneLeft()
    })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** The promise's outcome, or an error with the code `TIMEOUT`. The promise itself goes on. */
export async function withTimeout<Value>(
  promise: Promise<Value>,
  timeoutMs: number,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'TIMEOUT' }))
    }, timeoutMs)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
