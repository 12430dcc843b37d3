import type { ConnectionOptions } from 'node:tls'
import type { Address } from './address.ts'
import { codeOf } from './failures.ts'
import { type Host, isUnixSocket } from './hosts.ts'
import { TlsFailure } from './sockets.ts'
import { encryptions, readTlsOptions } from './tls.ts'

/** The terms on which a server takes connections. */
export interface Terms {
  /** Absent: nothing is encrypted. */
  readonly tls: ConnectionOptions | undefined
  /** Settings that the server gets with every connection. */
  readonly settings: Settings
  /** The same for connections of short statements, which find rows by an index. */
  readonly shortSettings: Settings
}

type Settings = Readonly<Record<string, string>>

/** Opens a session on the first terms that both sides agree to. */
export async function negotiate<Session>(
  { tls: wanted, settings }: Address,
  at: Host,
  open: (terms: Terms) => Promise<Session>,
): Promise<Session> {
  let refusal: unknown
  // As in libpq, nothing is encrypted within one machine.
  for (const encryption of encryptions[isUnixSocket(at) ? 'disable' : wanted.mode]) {
    const tls = encryption === 'tls' ? await readTlsOptions(wanted, at.host) : undefined
    try {
      return await openPinned(open, { tls, settings })
    } catch (error) {
      if (!isRefused(error)) throw error
      refusal = error
    }
  }
  throw refusal
}

/** Whether the server refuses connections with this encryption, or without it. */
function isRefused(error: unknown): boolean {
  return error instanceof TlsFailure || codeOf(error) === '28000'
}

/**
 * Opens a session that finds functions, operators and types in `pg_catalog` only: other users of
 * the database cannot put theirs in their place. PgBouncer refuses this setting. Through it, our
 * statements are safe as long as `pg_catalog` comes first, which every session checks.
 */
async function openPinned<Session>(
  open: (terms: Terms) => Promise<Session>,
  { tls, settings }: Pick<Terms, 'tls' | 'settings'>,
): Promise<Session> {
  const pinned = { ...settings, search_path: 'pg_catalog' }
  try {
    return await open({ tls, settings: pinned, shortSettings: { ...byIndex, ...pinned } })
  } catch (error) {
    if (codeOf(error) !== '08P01') throw error
    return open({ tls, settings, shortSettings: settings })
  }
}

/**
 * A connection keeps its plans: one made for a few plants would still read all of them when they
 * are many. Up to PostgreSQL 17, tables without an index would then seem worth the compiler.
 */
const byIndex = { enable_seqscan: 'off', jit: 'off' }
