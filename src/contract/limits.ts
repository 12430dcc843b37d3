/** The sizes that a request may have, and what the document says about them. Nothing changes them. */
export const limits = {
  bodyBytes: 1024 * 1024,
  jsonDepth: 32,
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  /** How many chunks a body may come in. */
  bodyChunks: 16 * 1024,
  /** How many connections a process takes. */
  connections: 20_000,
  retryAfterSeconds: 1,
} as const

/** How long things may take. They are passed to what needs them, so that a test can shorten them. */
export interface Timeouts {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  /** How long a client may read nothing of its answer. Node looks twice, so it can be twice as long. */
  readonly stallTimeoutMs: number
  /** How long an idle connection is kept. */
  readonly keepAliveTimeoutMs: number
  /** How long a shutdown keeps serving, so that clients notice that it is no longer ready. */
  readonly idleGraceMs: number
  /** How long a shutdown may take, whatever a client does. */
  readonly shutdownMs: number
  /** How long an export may take. While it runs, the store cannot reclaim space. */
  readonly exportMs: number
}

export const defaultTimeouts: Timeouts = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  stallTimeoutMs: 15_000,
  // Longer than the 60 s after which common balancers drop their idle connections.
  keepAliveTimeoutMs: 72_000,
  idleGraceMs: 1_000,
  shutdownMs: 9_000,
  exportMs: 600_000,
}
