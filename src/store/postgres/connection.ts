import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import pgpass from 'pgpass'
import { toStatement } from '../steps.ts'
import { type Address, type Host, toSocketPath } from './address.ts'
import { codeOf, Lost, withTimeout } from './failures.ts'
import { requirePrimary } from './schema.ts'
import { type Result, type Sql, type Texts, toStatementName, type Value } from './sql.ts'
import { encrypt } from './tls.ts'

/**
 * One connection to one server, a `Client` of pg. It never reconnects: once it is lost or
 * destroyed, every statement on it fails with `Lost`, including those in flight.
 *
 * An error of the server ends one statement. Anything else (a fatal error, a closed socket, a
 * deadline, an implausible result) ends the connection, so that no statement can get the answer to
 * another.
 */
export interface Connection {
  readonly sql: Sql
  /**
   * The rows of a COPY to STDOUT, on a connection that is not pipelined. The server waits while the
   * caller does not read. A caller that stops before the end must destroy the connection.
   */
  copy(text: string): Readable
  /** Lets the statements in flight finish within this time, then closes the connection. */
  end(graceMs: number): Promise<void>
  /** Closes the socket at once. The server may still execute what was sent. */
  destroy(): void
}

/** How to connect to a server. */
export interface Terms {
  /** Absent: nothing is encrypted. */
  readonly tls?: ConnectionOptions | undefined
  /** The settings to send, as `-c name=value`. */
  readonly options?: string | undefined
  /** Whether each statement is sent at once, and the server answers in order. */
  readonly isPipelined: boolean
}

/** How long the server may take to close a connection. */
const farewellMs = 100
const defaultConnectSeconds = 2
/** The SQLSTATE of a notice that is not a warning. */
const noWarning = '00000'
/** Idle connections are probed, so that no router on the way forgets them. */
const keepAliveMs = 60_000

/**
 * Opens a connection to a server, or throws why it cannot be used: it must be a primary, with
 * `pg_catalog` first in its search path. `onClosed` is called once, with a reason unless the
 * connection was ended or destroyed by us.
 */
export async function openConnection(
  address: Address,
  at: Host,
  terms: Terms,
  onClosed: (reason: Lost | undefined) => void = () => {},
): Promise<Connection> {
  const { prepare, connect_timeout } = address.parameters
  const path = toSocketPath(at)
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: keepAliveMs }
  const socket = connectSocket({ ...(path === undefined ? at : { path }), ...keepAlive })
  // Errors are met where the socket is used.
  socket.on('error', () => {})
  let state: 'opening' | 'open' | 'closed' = 'opening'

  async function open(): Promise<Connection> {
    await once(socket, 'connect')
    const stream = toStream(terms.tls ? await encrypt(socket, at, terms.tls) : socket)
    const client = newClient(address, at, terms, stream)
    const connection = buildConnection(client, stream, prepare !== 'false', (reason) => {
      if (state === 'open') onClosed(reason)
      state = 'closed'
    })
    await client.connect().catch((error) => {
      throw codeOf(error) === '' ? toLost(error) : error
    })
    await requirePrimary(connection.sql)
    if (state === 'closed') throw toLost(undefined)
    state = 'open'
    return connection
  }

  try {
    return await withTimeout(open(), Number(connect_timeout ?? defaultConnectSeconds) * 1_000)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/**
 * A socket as pg takes one: it is connected already, and an error of its reader ends it. pg's
 * parser throws on some messages, which would end the process.
 */
function toStream(socket: Socket): Socket {
  const emit = socket.emit.bind(socket)
  return Object.assign(socket, {
    connect() {
      process.nextTick(emit, 'connect')
      return socket
    },
    emit(...event: Parameters<typeof emit>) {
      try {
        return emit(...event)
      } catch (error) {
        socket.destroy(error as Error)
        return true
      }
    },
  })
}

function newClient(address: Address, at: Host, terms: Terms, stream: Socket): pg.Client {
  const { user, database, password, parameters } = address
  const { application_name = 'plant-store', channel_binding = 'disable' } = parameters
  const client: pg.Client = new pg.Client({
    ...at,
    user,
    database,
    password: () => password ?? findPassword(client),
    application_name,
    options: terms.options,
    // The stream is encrypted already.
    ssl: false,
    // Otherwise PGSSLNEGOTIATION could ask for TLS.
    sslnegotiation: 'postgres',
    enableChannelBinding: channel_binding !== 'disable' && terms.tls !== undefined,
    pipeline: terms.isPipelined,
    stream: () => stream,
  })
  return client
}

/** The password for a server in PGPASSFILE or ~/.pgpass. pg would look there with a warning. */
function findPassword({ host, port, database, user }: pg.Client): Promise<string> {
  return new Promise((resolve, reject) => {
    pgpass({ host, port, database, user }, (password) =>
      password === undefined ? reject(noPassword()) : resolve(password),
    )
  })
}

/** The same code that a server sends for a wrong password. */
function noPassword(): Error {
  return Object.assign(new Error('the server asks for a password'), { code: '28P01' })
}

function buildConnection(
  client: pg.Client,
  stream: Socket,
  isPrepared: boolean,
  onClosed: (reason: Lost | undefined) => void,
): Connection {
  const statements = new Map<string, 'preparing' | 'prepared'>()
  let lost: Lost | undefined
  let isOurs = false
  let warnings = 0

  client.on('notice', ({ code }) => {
    if (code !== noWarning) warnings++
  })
  client.on('error', lose)
  client.on('end', () => lose(undefined))

  function lose(error: Error | undefined): void {
    if (lost !== undefined) return
    lost = toLost(error)
    stream.destroy()
    onClosed(isOurs ? undefined : lost)
  }

  function destroy(): void {
    isOurs = true
    lose(undefined)
  }

  async function send(query: pg.QueryConfig): Promise<pg.QueryResult> {
    if (lost !== undefined) throw lost
    // Statements of one tick are sent in one packet.
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(() => stream.uncork())
    }
    try {
      return await client.query(query)
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw lost ?? toLost(error)
      if (isStale(error)) lose(error)
      // A server that has refused a statement takes another one. One that ends the connection with
      // its error may have executed it. The severity is a word in the language of the server.
      await client.query('').catch(() => {
        throw toLost(error)
      })
      throw error
    }
  }

  async function execute(query: pg.QueryConfig & Partial<pg.QueryArrayConfig>) {
    const name = toStatementName(query.text)
    const isFirst = !statements.has(name)
    if (isFirst) statements.set(name, 'preparing')
    // Until the server has prepared a statement, the same one is sent without the name: if the
    // first fails, the others would not find it.
    const isNamed = isPrepared && (isFirst || statements.get(name) === 'prepared')
    try {
      const result = await send(isNamed ? { ...query, name } : query)
      if (isFirst) statements.set(name, 'prepared')
      const { rows, rowCount } = result
      if (rows.length === 0 || rows.length === rowCount) return result
    } catch (error) {
      if (isFirst) statements.delete(name)
      throw error
    }
    lose(new Error('a result has another number of rows than the server says'))
    throw lost
  }

  async function run<Found extends readonly object[]>(text: string, values: readonly Value[] = []) {
    const { rows, rowCount } = await execute({ text, values: [...values] })
    return Object.assign(rows, { count: rowCount ?? 0 }) as unknown as Result<Found>
  }

  async function texts<Row extends Texts>(text: string, values: readonly Value[] = []) {
    return (await execute({ text, values: [...values], rowMode: 'array', types: asText }))
      .rows as Row[]
  }

  function copy(text: string): Readable {
    // A connection that is lost after the last row is an error of the stream as well.
    return client.query(copyTo(text)).on('error', () => {})
  }

  async function end(graceMs: number): Promise<void> {
    isOurs = true
    await withTimeout(client.end(), graceMs + farewellMs).catch(() => {})
    destroy()
  }

  const tag = <Found extends readonly object[]>(parts: TemplateStringsArray, ...values: Value[]) =>
    run<Found>(toStatement(parts), values)
  const script = async (text: string) => void (await send({ text }))
  const sql: Sql = Object.assign(tag, { run, texts, script, warnings: () => warnings })
  return { sql, copy, end, destroy }
}

/** Leaves every field as the server writes it. */
const asText: pg.CustomTypesConfig = { getTypeParser: () => (text: string) => text }

/** The statement was prepared before the tables changed, or by another client of a pooler. */
function isStale({ code, routine }: pg.DatabaseError): boolean {
  return code === '26000' || routine === 'RevalidateCachedQuery'
}

function toLost(cause: unknown): Lost {
  return cause instanceof Lost ? cause : new Lost(codeOf(cause) || 'CLOSED', cause)
}
