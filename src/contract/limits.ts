/** The bounds of a request. Tests may shorten the times; nothing else changes them. */
export const limits = {
  bodyBytes: 1024 * 1024,
  jsonDepth: 32,
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** How long a client may take nothing of its answer; Node looks twice, so it can be twice as long. */
  stallTimeoutMs: 15_000,
  /** How long an idle connection is kept: longer than the 60 s after which common balancers drop theirs. */
  keepAliveTimeoutMs: 72_000,
  /** How long a shutdown goes on as before, apart from readiness, so that clients notice and go elsewhere. */
  idleGraceMs: 1_000,
  /** How long a shutdown may take, whatever a client does. */
  shutdownMs: 9_000,
  /** How long an export may take: it keeps the store from cleaning up behind itself. */
  exportMs: 600_000,
  retryAfterSeconds: 1,
}

export type Limits = typeof limits
