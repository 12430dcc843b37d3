import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect as connectTls,
  createSecureContext,
  getCACertificates,
  type TLSSocket,
} from 'node:tls'
import pg from 'pg'
import pgpass from 'pgpass'
import { UnusableStore } from '../store.ts'
import { type Address, type Host, toSocketPath } from './address.ts'
import { codeOf, isStale, Lost, TlsFailure, toLost, withTimeout } from './failures.ts'
import { requirePrimary } from './prepare.ts'
import { buildSql, type SentQuery } from './sql.ts'

/**
 * One connection to one server, a `Client` of pg. It never reconnects: once it is lost or
 * destroyed, every statement on it fails with `Lost`, including those in flight.
 *
 * An error of the server ends one statement. Anything else (a fatal error, a closed socket, a
 * deadline, an implausible result) ends the connection, so that no statement can get the answer to
 * another.
 */
export type Connection = ReturnType<typeof buildConnection>

/** How long the server may take to close a connection. */
const farewellMs = 100
const defaultConnectSeconds = 2
/** The SQLSTATE of a notice that is not a warning. */
const noWarning = '00000'
/** Idle connections are probed, so that no router on the way forgets them. */
const keepAliveMs = 60_000

/**
 * Opens a connection to a server, or throws why it cannot be used: it must be a primary, with
 * `pg_catalog` first in its search path. The options are settings to send, as `-c name=value`.
 */
export async function openConnection(
  address: Address,
  at: Host,
  encryption: 'none' | 'tls',
  options?: string,
): Promise<Connection> {
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: keepAliveMs }
  const socket = connectSocket({ ...at, path: toSocketPath(at), ...keepAlive })
  // Errors are met where the socket is used.
  socket.on('error', () => {})

  async function open(): Promise<Connection> {
    await once(socket, 'connect')
    const stream = toStream(encryption === 'tls' ? await encrypt(socket, at, address) : socket)
    const client = newClient(address, at, stream, options)
    const connection = buildConnection(client, stream, address.parameters.prepare !== 'false')
    await client.connect()
    await requirePrimary(connection.sql)
    return connection
  }

  try {
    const seconds = Number(address.parameters.connect_timeout ?? defaultConnectSeconds)
    return await withTimeout(open(), seconds * 1_000)
  } catch (error) {
    socket.destroy()
    throw error instanceof UnusableStore ? error : toLost(error)
  }
}

/** The message with which a client asks for TLS. The server answers with one letter. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** Encrypts a connection before anything else is sent on it, or throws `TlsFailure`. */
async function encrypt(socket: Socket, at: Host, { parameters }: Address): Promise<TLSSocket> {
  const options = await readTlsOptions(parameters)
  try {
    socket.write(tlsRequest)
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
    // More than the letter would have been sent in between, before the encryption.
    if (String(answer) !== 'S') {
      throw new Lost(String(answer) === 'N' ? 'TLS_REFUSED' : 'TLS_NO_ANSWER')
    }
    // The name of a server is never an IP address (RFC 6066, section 3).
    const servername = isIP(at.host) === 0 ? at.host : ''
    const encrypted = connectTls({ socket, host: at.host, servername, ...options })
    await once(encrypted, 'secureConnect')
    return encrypted
  } catch (error) {
    throw new TlsFailure(codeOf(error), error)
  }
}

/** Reads the files for TLS. Throws `UnusableStore` if one cannot be used. */
async function readTlsOptions(parameters: Address['parameters']): Promise<ConnectionOptions> {
  const { sslmode, sslrootcert, sslcert, sslkey } = parameters
  // Node.js takes an empty text for none, but not in a list.
  const read = async (path?: string) => path && [await readFile(path, 'utf8')]
  try {
    const ca = sslrootcert === 'system' ? getCACertificates('system') : await read(sslrootcert)
    const files = { ca, cert: await read(sslcert), key: await read(sslkey) }
    return {
      // Without an authority, Node.js trusts those that it brings.
      secureContext: createSecureContext(files),
      rejectUnauthorized: sslmode === 'verify-full' || ca !== undefined,
      ...(sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }),
    }
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    throw new UnusableStore(
      path === undefined
        ? 'A file of sslrootcert, sslcert or sslkey of DATABASE_URL is no certificate or key ' +
            `in PEM form, or the key belongs to another certificate (${code}).`
        : `sslrootcert, sslcert or sslkey of DATABASE_URL: ${path} cannot be read (${code}).`,
      { cause: error },
    )
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

function newClient(address: Address, at: Host, stream: Socket, options?: string): pg.Client {
  const { user, database, password, parameters } = address
  const { application_name = 'plant-store', channel_binding = 'disable' } = parameters
  const client: pg.Client = new pg.Client({
    ...at,
    user,
    database,
    password: () => password ?? findPassword(client),
    application_name,
    options,
    // The stream is encrypted already.
    ssl: false,
    // Otherwise PGSSLNEGOTIATION could ask for TLS.
    sslnegotiation: 'postgres',
    enableChannelBinding: channel_binding !== 'disable',
    // Each statement is sent at once, and the server answers in order.
    pipeline: true,
    stream: () => stream,
  })
  return client
}

/** The password for a server in PGPASSFILE or ~/.pgpass. pg would look there with a warning. */
function findPassword(client: pg.Client): Promise<string> {
  return new Promise((resolve, reject) => {
    pgpass(client, (password) =>
      // The code that a server sends for a wrong password.
      password === undefined ? reject(new Lost('28P01')) : resolve(password),
    )
  })
}

function buildConnection(client: pg.Client, stream: Socket, isPrepared: boolean) {
  /** Resolves when the connection is closed, with the reason unless we have closed it. */
  const closed = Promise.withResolvers<Lost | undefined>()
  let lost: Lost | undefined
  let isOurs = false
  let warnings = 0

  client.on('notice', ({ code }) => {
    if (code !== noWarning) warnings++
  })
  client.on('error', lose)
  client.on('end', () => lose())

  function lose(error?: unknown): void {
    if (lost !== undefined) return
    lost = toLost(error)
    stream.destroy()
    closed.resolve(isOurs ? undefined : lost)
  }

  /** Closes the socket at once. The server may still execute what was sent. */
  function destroy(): void {
    isOurs = true
    lose()
  }

  async function send(query: SentQuery): Promise<pg.QueryResult> {
    if (lost !== undefined) throw lost
    // Statements of one tick are sent in one packet.
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(() => stream.uncork())
    }
    try {
      const result = await client.query(isPrepared ? query : { ...query, name: undefined })
      // A script has a list of results.
      const { rows = [], rowCount } = result
      if (rows.length === 0 || rows.length === rowCount) return result
      throw new Error('a result has another number of rows than the server says')
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || isStale(error)) lose(error)
      if (lost !== undefined) throw lost
      // A server that has refused a statement takes another one. One that ends the connection with
      // its error may have executed it. The severity is a word in the language of the server.
      await client.query('').catch(() => {
        throw toLost(error)
      })
      throw error
    }
  }

  /** Lets the statements in flight finish within this time, then closes the connection. */
  async function end(graceMs: number): Promise<void> {
    isOurs = true
    await withTimeout(client.end(), graceMs + farewellMs).catch(() => {})
    destroy()
  }

  return { sql: buildSql(send, () => warnings), closed: closed.promise, end, destroy }
}
