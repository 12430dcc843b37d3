import { UnusableStore } from '../store.ts'
import { codeOf } from './failures.ts'
import { type Host, isUnixSocket, toSocketPath } from './hosts.ts'
import { NotPrimary, UnsafeSearchPath } from './primary.ts'
import { TlsFailure } from './sockets.ts'

/** Why no server can be used, in one line for the operator. */
export interface Explanation {
  readonly message: string
  /** Whether waiting cannot help. */
  readonly isFinal: boolean
}

/** Explains why none of the hosts could be used. */
export function explain(error: unknown, hosts: readonly Host[]): Explanation {
  const reasons: unknown[] = error instanceof AggregateError ? error.errors : [error]
  for (const reason of reasons) {
    const message = toFinalMessage(reason)
    if (message !== undefined) return { message, isFinal: true }
  }
  const names = hosts.map(toName).join(', ')
  if (reasons.every((reason) => reason instanceof NotPrimary)) {
    return {
      message: `No server of DATABASE_URL (${names}) is a primary: all are standbys.`,
      isFinal: false,
    }
  }
  const codes = [...new Set(reasons.map((reason) => codeOf(reason) || String(reason)))].join(', ')
  return {
    message:
      `No PostgreSQL server answers at ${names} of DATABASE_URL (${codes}). ` +
      'Check the address, and that it is PostgreSQL.',
    isFinal: false,
  }
}

function toName(at: Host): string {
  return isUnixSocket(at) ? toSocketPath(at) : `${at.host}:${at.port}`
}

function toFinalMessage(reason: unknown): string | undefined {
  if (reason instanceof UnusableStore) return reason.message
  if (reason instanceof UnsafeSearchPath) return unsafeSearchPath
  if (reason instanceof TlsFailure && !passingCodes.includes(reason.code)) {
    return tlsMessages[reason.code] ?? toTlsMessage(reason.code)
  }
  // With TLS 1.3, a server refuses the certificate of its client after the handshake.
  if (codeOf(reason).startsWith('ERR_SSL_')) return toTlsMessage(codeOf(reason))
  return serverMessages[codeOf(reason)]
}

const serverMessages: Record<string, string> = {
  '28P01': 'PostgreSQL refuses the user name or the password of DATABASE_URL.',
  '28000': 'PostgreSQL does not let the user of DATABASE_URL in: see its pg_hba.conf.',
  '3D000': 'The database that DATABASE_URL names does not exist: create it, or name another.',
  '42501': 'The user of DATABASE_URL may not connect to the database: grant it CONNECT.',
}

const unsafeSearchPath =
  'The search_path of the user of DATABASE_URL names pg_catalog after another schema, so that ' +
  'functions of other users could be called: ' +
  'take pg_catalog out of it (ALTER ROLE … SET search_path).'

const tlsMessages: Record<string, string> = {
  TLS_REFUSED:
    'The PostgreSQL server does not speak TLS, which sslmode of DATABASE_URL requires: ' +
    'set ssl = on there.',
  TLS_NOT_DIRECT:
    'The PostgreSQL server does not know sslnegotiation=direct: it needs PostgreSQL 17 or newer. ' +
    'Leave the parameter out.',
  CERT_HAS_EXPIRED: 'The certificate of the PostgreSQL server has expired: renew it.',
  CERT_NOT_YET_VALID:
    'The certificate of the PostgreSQL server is not valid yet: check the clocks.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'The certificate of the PostgreSQL server is for another host than the one of DATABASE_URL.',
}

function toTlsMessage(code: string): string {
  return untrustedCodes.includes(code)
    ? `No authority of sslrootcert has signed the certificate of the PostgreSQL server (${code}).`
    : `The PostgreSQL server of DATABASE_URL cannot be reached over TLS (${code}).`
}

/** A server that starts or stops closes connections at any moment. */
const passingCodes = ['ABORT_ERR', 'ECONNRESET', 'EPIPE', 'TIMEOUT', 'TLS_NO_ANSWER']

const untrustedCodes = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
]
