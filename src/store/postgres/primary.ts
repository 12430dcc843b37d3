import { once } from 'node:events'
import type postgres from 'postgres'
import type { Sql } from './pools.ts'
import type { Sockets } from './sockets.ts'
import { withTimeout } from './timeout.ts'

/** The process of the server that serves one connection, and the secret to cancel it. */
export type Backend = Pick<postgres.State, 'pid' | 'secret'>

/** The server is a standby: it cannot take writes. */
export class NotPrimary extends Error {
  constructor() {
    super('the server is a standby')
    this.name = 'NotPrimary'
  }
}

/** The server looks for functions and operators in other schemas before its own. */
export class UnsafeSearchPath extends Error {
  constructor() {
    super('the search_path puts other schemas before pg_catalog')
    this.name = 'UnsafeSearchPath'
  }
}

/** Throws unless the server is a primary whose own functions and operators come first. */
export async function requirePrimary(sql: Sql): Promise<Backend> {
  const rows = await sql<[{ standby: boolean; schemas: string }]>`
    SELECT pg_catalog.pg_is_in_recovery() AS standby, pg_catalog.current_schemas(TRUE) AS schemas`
  const [{ standby, schemas }] = rows
  if (standby) throw new NotPrimary()
  // PostgreSQL never looks for functions and operators among temporary objects.
  if (!/^\{(pg_temp_\d+,)?pg_catalog[,}]/.test(schemas)) throw new UnsafeSearchPath()
  return rows.state
}

/**
 * Asks the server to cancel the statement of a backend, over one of these sockets, and waits until
 * it got the request.
 */
export async function cancelStatement(
  sockets: Sockets,
  { pid, secret }: Backend,
  timeoutMs: number,
): Promise<void> {
  const socket = await sockets.open()
  const request = Buffer.alloc(16)
  for (const [index, value] of [request.length, cancelCode, pid, secret].entries()) {
    request.writeUInt32BE(value, index * 4)
  }
  // The server closes the connection. PgBouncer 1.18 crashes when the client closes it first.
  socket.resume().write(request)
  await withTimeout(once(socket, 'close'), timeoutMs).finally(() => socket.destroy())
}

const cancelCode = 80_877_102
