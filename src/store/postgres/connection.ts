import type { Duplex } from 'node:stream'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import pg from 'pg'
import pgpass from 'pgpass'
import { UnusableStore } from '../store.ts'
import type { Address, Host } from './address.ts'
import { codeOf, Lost, standby, TlsFailure, timedOut, withTimeout } from './failures.ts'
import {
  type Result,
  type Sql,
  type Texts,
  toStatement,
  toStatementName,
  type Value,
} from './sql.ts'

/**
 * One connection to one server, a `Client` of pg. It never reconnects: once it is lost or
 * destroyed, every statement on it fails with `Lost`, including those in flight.
 *
 * Statements are pipelined: each is sent at once, and the server answers in order. An error of the
 * server ends one statement. Anything else (a fatal error, a closed socket, a deadline, an
 * implausible result) ends the connection, so that no statement can get the answer to another.
 */
export interface Connection {
  readonly sql: Sql
  /**
   * The rows of a COPY to STDOUT as pieces of text. While the caller does not read, the socket is
   * paused and the server waits. If a piece takes longer than the timeout, or the caller stops
   * before the end, the connection is destroyed.
   */
  copy(text: string, timeoutMs: number): AsyncGenerator<string>
  /** Lets the statements in flight finish within this time, then closes the connection. */
  end(graceMs: number): Promise<void>
  /** Closes the socket at once. The server may still execute what was sent. */
  destroy(): void
}

/** How to connect to a server, and the settings to send. */
export interface Terms {
  /** Absent: nothing is encrypted. */
  readonly tls: ConnectionOptions | undefined
  readonly settings: Readonly<Record<string, string>>
}

/** How much text of a COPY is buffered. */
const pieceChars = 64 * 1024
/** How long the server may take to close a connection. */
const farewellMs = 100
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
  { tls, settings }: Terms,
  onClosed: (reason: Lost | undefined) => void = () => {},
): Promise<Connection> {
  const client = newClient(address, at, tls)
  let lost: Lost | undefined
  let isOpen = false
  let isOurs = false
  let warnings = 0

  // pg would only send the settings that it knows.
  Object.assign(client, {
    getStartupConf: () => ({ user: client.user, database: client.database, ...settings }),
  })
  client.on('notice', ({ code }) => {
    if (code !== noWarning) warnings++
  })
  client.on('error', lose)
  client.on('end', () => lose(undefined))

  function lose(error: Error | undefined): void {
    if (lost !== undefined) return
    lost = toLost(error)
    client.connection.stream.destroy()
    if (isOpen) onClosed(isOurs ? undefined : lost)
  }

  function destroy(): void {
    isOurs = true
    lose(undefined)
  }

  /** Sends a query. Fails with `Lost` if the connection ends before it is ready for the next. */
  function send(query: PgQuery): Promise<PgResult> {
    return new Promise((resolve, reject) => {
      if (lost !== undefined) throw lost
      const { connection } = client
      query.callback = (error, result) => {
        if (error === null) return resolve(result)
        if (!(error instanceof pg.DatabaseError)) return reject(lost ?? toLost(error))
        const onReady = () => {
          connection.off('end', onEnd)
          reject(error)
        }
        const onEnd = () => {
          connection.off('readyForQuery', onReady)
          reject(toLost(error))
        }
        connection.once('readyForQuery', onReady).once('end', onEnd)
      }
      // Statements of one tick are sent in one packet.
      if (connection.stream.writableCorked === 0) {
        const { stream } = connection
        stream.cork()
        process.nextTick(() => stream.uncork())
      }
      client.query(query)
    })
  }

  async function execute(text: string, values: readonly Value[] = []) {
    const rows: Texts[] = []
    // pg would build an object and emit an event for each row.
    const handleDataRow = ({ fields }: { readonly fields: Texts }) => void rows.push(fields)
    const query = Object.assign(newQuery(text, values), { handleDataRow })
    const name = toStatementName(text)
    // Until the server has prepared a statement, the same one is sent without the name: if the
    // first fails, the others would not find it.
    if (address.isPrepared && !Object.hasOwn(toPreparing(client), name)) query.name = name
    const { fields, rowCount } = await send(query).catch((error) => {
      if (!isStale(error)) throw error
      // The statement was prepared before the tables changed, or by another client of a pooler.
      lose(error)
      throw toLost(error)
    })
    if (rows.length > 0 && rows.length !== rowCount) {
      lose(new Error('a result has another number of rows than the server says'))
      throw lost
    }
    return { rows, fields, count: rowCount ?? 0 }
  }

  async function texts<Row extends Texts>(text: string, values?: readonly Value[]): Promise<Row[]> {
    const { rows } = await execute(text, values)
    return rows as readonly Texts[] as Row[]
  }

  async function run<Found extends readonly object[]>(
    text: string,
    values?: readonly Value[],
  ): Promise<Result<Found>> {
    const { rows, fields, count } = await execute(text, values)
    const objects = rows.map((row) => toObject(fields, row))
    return Object.assign(objects, { count }) as unknown as Result<Found>
  }

  async function* copy(text: string, timeoutMs: number): AsyncGenerator<string> {
    const { stream } = client.connection
    let piece = ''
    let isDone = false
    let wake = () => {}
    const query = Object.assign(newQuery(text), {
      handleCopyData({ chunk }: { readonly chunk: Buffer }) {
        // Copied, because pg reuses the memory of a chunk.
        piece += chunk.toString()
        if (piece.length < pieceChars) return
        stream.pause()
        wake()
      },
    })
    const sent = send(query).finally(() => {
      isDone = true
      wake()
    })
    sent.catch(() => {})
    try {
      while (!isDone) {
        const { promise: woken, resolve } = Promise.withResolvers<void>()
        wake = resolve
        stream.resume()
        await withTimeout(woken, timeoutMs)
        const taken = piece
        piece = ''
        if (taken !== '') yield taken
      }
      await sent
      if (piece !== '') yield piece
    } finally {
      // The last rows may have paused the socket, which later answers need.
      stream.resume()
      if (!isDone) destroy()
    }
  }

  async function end(graceMs: number): Promise<void> {
    isOurs = true
    await withTimeout(client.end(), graceMs + farewellMs).catch(() => {})
    destroy()
  }

  const tag = <Found extends readonly object[]>(parts: TemplateStringsArray, ...values: Value[]) =>
    run<Found>(toStatement(parts), values)
  const script = async (text: string) => void (await send(newQuery(text)))
  const sql: Sql = Object.assign(tag, { run, texts, script, warnings: () => warnings })
  try {
    await connect(client, address, tls)
    await withTimeout(requirePrimary(sql), address.connectTimeoutMs)
    if (lost !== undefined) throw lost
    isOpen = true
    return { sql, copy, end, destroy }
  } catch (error) {
    destroy()
    throw error
  }
}

/** The parts of a query of pg that its types leave out. */
interface PgQuery extends pg.Query {
  name?: string
  callback?: (error: Error | null, result: PgResult) => void
}
type PgResult = pg.QueryResult<object>

function newQuery(text: string, values: readonly Value[] = []): PgQuery {
  const Query = pg.Query as unknown as new (text: string, values: readonly Value[]) => PgQuery
  return new Query(text, values)
}

/** The statements by name that the server was asked to prepare and has not. */
function toPreparing({ connection }: pg.Client): object {
  return (connection as unknown as Record<'submittedNamedStatements', object>)
    .submittedNamedStatements
}

function newClient(address: Address, at: Host, tls: ConnectionOptions | undefined): pg.Client {
  const client: pg.Client = new pg.Client({
    host: at.host,
    port: at.port,
    user: address.user,
    database: address.database,
    password: () => address.password ?? findPassword(client),
    ssl: tls ?? false,
    // Otherwise PGSSLNEGOTIATION could ask for TLS where there is none.
    sslnegotiation: 'postgres',
    enableChannelBinding: address.bindsChannel,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    pipeline: true,
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

function toObject(fields: readonly pg.FieldDef[], row: Texts): object {
  return Object.fromEntries(
    fields.map(({ name, dataTypeID }, index) => [name, toValue(row[index] ?? null, dataTypeID)]),
  )
}

/** Text and 64-bit integers stay text. */
function toValue(text: string | null, type: number): unknown {
  return text === null || unparsed.includes(type) ? text : pg.types.getTypeParser(type)(text)
}

const unparsed: readonly number[] = [pg.types.builtins.INT8, pg.types.builtins.TEXT]

/** The same code that a server sends for a wrong password. */
function noPassword(): Error {
  return Object.assign(new Error('the server asks for a password'), { code: '28P01' })
}

/** Connects within `connectTimeoutMs`. Distinguishes failures of TLS from others. */
async function connect(
  client: pg.Client,
  { connectTimeoutMs }: Address,
  tls: ConnectionOptions | undefined,
): Promise<void> {
  const { connection } = client
  const plain = connection.stream
  let answer: string | undefined
  let isEncrypting = false
  plain.once('connect', () => {
    isEncrypting = tls !== undefined
  })
  if (tls !== undefined) {
    plain.once('data', (bytes) => {
      answer = String(bytes)
    })
  }
  connection.once('sslconnect', () => {
    const encrypted = connection.stream as TLSSocket
    guard(encrypted)
    encrypted.once('secureConnect', () => {
      isEncrypting = false
    })
  })
  const timer = setTimeout(() => connection.stream.destroy(timedOut()), connectTimeoutMs)
  try {
    const connected = client.connect()
    if (tls === undefined) guard(plain)
    await connected
  } catch (error) {
    if (isEncrypting) throw toTlsFailure(error, answer)
    throw codeOf(error) === '' ? toLost(error) : error
  } finally {
    clearTimeout(timer)
  }
}

/** Ends the connection on malformed input, where pg would throw and end the process. */
function guard(stream: Duplex): void {
  for (const listener of stream.listeners('data')) {
    stream.off('data', listener as () => void).on('data', (bytes) => {
      try {
        listener(bytes)
      } catch (error) {
        stream.destroy(error as Error)
      }
    })
  }
}

function toTlsFailure(error: unknown, answer: string | undefined): TlsFailure {
  const withoutCode = answer === 'N' ? 'TLS_REFUSED' : 'TLS_NO_ANSWER'
  return new TlsFailure(codeOf(error) || withoutCode, error)
}

function isStale(error: unknown): boolean {
  const { code, routine } = error as Partial<pg.DatabaseError>
  return code === '26000' || routine === 'RevalidateCachedQuery'
}

function toLost(cause: unknown): Lost {
  return cause instanceof Lost ? cause : new Lost(codeOf(cause) || 'CLOSED', cause)
}

interface ServerState {
  readonly is_standby: boolean
  readonly readonly: string
  readonly schemas: string
}

/**
 * Throws unless the server is a primary that accepts writes, with `pg_catalog` first in its search
 * path.
 */
export async function requirePrimary(sql: Sql): Promise<void> {
  const [{ is_standby, readonly, schemas }] = await sql<[ServerState]>`
    SELECT pg_catalog.pg_is_in_recovery() AS is_standby,
      pg_catalog.current_setting('transaction_read_only') AS readonly,
      pg_catalog.current_schemas(TRUE)::pg_catalog.text AS schemas`
  if (is_standby) throw new Lost(standby)
  if (readonly === 'on') {
    throw new UnusableStore(
      'PostgreSQL makes the transactions of the user of DATABASE_URL read-only: ' +
        'reset default_transaction_read_only (ALTER ROLE, ALTER DATABASE or ALTER SYSTEM).',
    )
  }
  // PostgreSQL never looks up functions and operators in the temporary schema.
  if (/^\{(pg_temp_\d+,)?pg_catalog[,}]/.test(schemas)) return
  throw new UnusableStore(
    'The search_path of the user of DATABASE_URL names pg_catalog after another schema, so that ' +
      'functions of other users could be called: ' +
      'take pg_catalog out of it (ALTER ROLE … SET search_path).',
  )
}
