import { diskFull, unconfirmed, unreachable } from '../failures.ts'
import { UnreachableStore, UnusableStore } from '../store.ts'
import { type Host, toSocketPath } from './address.ts'

/** The connection is lost or abandoned. A statement that was sent may have been executed. */
export class Lost extends Error {
  /** The code of an error of the system or the server, or one of our own. */
  readonly code: string
  constructor(code: string, cause?: unknown) {
    super(`the connection is lost (${code})`, { cause })
    this.name = 'Lost'
    this.code = code
  }
}

/** The TLS handshake failed. */
export class TlsFailure extends Lost {}

/** Another transaction changed the rows meanwhile, so the write must be retried. */
export class StaleRows extends Error {
  constructor() {
    super('the rows were changed by another transaction')
    this.name = 'StaleRows'
  }
}

/** The code of an error of the server or the connection, such as `28P01` or `ECONNREFUSED`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** A serialization conflict or deadlock: the server rolled back, and the write can be retried. */
export function isConflict(error: unknown): boolean {
  if (error instanceof Lost) return false
  return error instanceof StaleRows || ['40001', '40P01'].includes(codeOf(error))
}

/** The statement was prepared before the tables changed, or by another client of a pooler. */
export function isStale(error: Error): boolean {
  return codeOf(error) === '26000' || ('routine' in error && error.routine === staleRoutine)
}

const staleRoutine = 'RevalidateCachedQuery'

/** The loss of a connection, for any reason. */
export function toLost(cause: unknown): Lost {
  return cause instanceof Lost ? cause : new Lost(codeOf(cause) || 'CLOSED', cause)
}

/** The code for a server that is a standby. */
export const standby = 'STANDBY'

/**
 * The outcome of a promise, or `Lost` if it is late. The promise itself keeps running. An answer
 * that has come while this process was stopped is read before it counts as late.
 */
export async function withTimeout<Value>(
  promise: Promise<Value>,
  timeoutMs: number,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(() => reject(new Lost('TIMEOUT'))), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The failure of a write. A server error rolled it back; a lost connection may not have. */
export function toWriteFailure(error: unknown): unknown {
  if (error instanceof Lost) return unconfirmed(error)
  return codeOf(error) === '53100' ? diskFull(error) : toReadFailure(error)
}

/** The failure of a read. Nothing can have been stored. */
export function toReadFailure(error: unknown): unknown {
  const isTransient = error instanceof Lost || isConflict(error) || codeOf(error) === readOnly
  return isTransient || transientClasses.includes(codeOf(error).slice(0, 2))
    ? unreachable(error)
    : error
}

/** The server no longer accepts writes: it became a standby. */
const readOnly = '25006'

// SQLSTATE classes of transient errors: resources, operator intervention, system errors.
const transientClasses = ['53', '55', '57', '58']

/** Why no server can be used. It is an `UnreachableStore` if waiting can help. */
export function toUnusable(error: unknown, hosts: readonly Host[]): UnusableStore {
  const reasons: unknown[] = error instanceof AggregateError ? error.errors : [error]
  for (const reason of reasons) {
    const message = toFinalMessage(reason)
    if (message !== undefined) return new UnusableStore(message, { cause: error })
  }
  const names = hosts.map((at) => toSocketPath(at) ?? `${at.host}:${at.port}`).join(', ')
  if (reasons.every((reason) => codeOf(reason) === standby)) {
    const message = `No server of DATABASE_URL (${names}) is a primary: all are standbys.`
    return new UnreachableStore(message, { cause: error })
  }
  const codes = [...new Set(reasons.map((reason) => codeOf(reason) || String(reason)))].join(', ')
  return new UnreachableStore(
    `No PostgreSQL server answers at ${names} of DATABASE_URL (${codes}). ` +
      'Check the address, and that it is PostgreSQL.',
    { cause: error },
  )
}

function toFinalMessage(reason: unknown): string | undefined {
  if (reason instanceof UnusableStore) return reason.message
  if (reason instanceof TlsFailure && !transientCodes.includes(reason.code)) {
    return tlsMessages[reason.code] ?? toTlsMessage(reason.code)
  }
  // With TLS 1.3, a server rejects the certificate of its client after the handshake.
  if (codeOf(reason).startsWith('ERR_SSL_')) return toTlsMessage(codeOf(reason))
  return serverMessages[codeOf(reason)]
}

const serverMessages: Record<string, string> = {
  '28P01': 'PostgreSQL refuses the user name or the password of DATABASE_URL.',
  '28000': 'PostgreSQL does not let the user of DATABASE_URL in: see its pg_hba.conf.',
  '3D000': 'The database that DATABASE_URL names does not exist: create it, or name another.',
  '42501': 'The user of DATABASE_URL may not connect to the database: grant it CONNECT.',
}

const tlsMessages: Record<string, string> = {
  TLS_REFUSED:
    'The PostgreSQL server does not speak TLS, which sslmode of DATABASE_URL requires: ' +
    'set ssl = on there.',
  CERT_HAS_EXPIRED: 'The certificate of the PostgreSQL server has expired: renew it.',
  CERT_NOT_YET_VALID:
    'The certificate of the PostgreSQL server is not valid yet: check the clocks.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'The certificate of the PostgreSQL server is for another host than the one of DATABASE_URL.',
}

function toTlsMessage(code: string): string {
  return /SELF_SIGNED_CERT|UNABLE_TO_|CERT_SIGNATURE_FAILURE/.test(code)
    ? `No authority of sslrootcert has signed the certificate of the PostgreSQL server (${code}).`
    : `The PostgreSQL server of DATABASE_URL cannot be reached over TLS (${code}).`
}

/** A server that starts or stops may close connections at any moment. */
const transientCodes = ['ABORT_ERR', 'ECONNRESET', 'EPIPE', 'TIMEOUT', 'TLS_NO_ANSWER']
