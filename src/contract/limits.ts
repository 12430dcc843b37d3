/** The bounds of requests and connections. They are fixed; the document names those of requests. */
export const limits = {
  bodyBytes: 1024 * 1024,
  jsonDepth: 32,
  headerBytes: 16 * 1024,
  urlBytes: 8 * 1024,
  /** A body may come in this many chunks, and in more if they have this many bytes on average. */
  bodyChunks: 1_000,
  bodyChunkBytes: 256,
  /** The number of connections that a process accepts. */
  connections: 20_000,
  /** How many idempotency keys a token may use within the 24 hours that one is kept. */
  keysOfToken: 10_000_000,
  /** How many imports run at a time. */
  imports: 4,
  /** How many of them one token may have. */
  importsOfToken: 2,
  /** An import whose client sends less than this in the time for a request is too slow. */
  importBytesInTime: 64 * 1024,
  /** While no more imports may begin, the slowest of them has to send this in that time. */
  importBytesInTimeWhenFull: 1024 * 1024,
  /** An import ends after this many lines that it has refused. */
  refusedLines: 100_000,
  /** A gzipped import may expand to this many bytes, and to more by this factor. */
  gzipFreeBytes: 1024 * 1024,
  gzipFactor: 100,
  /** How many streams of events a process sends. */
  eventStreams: 1_000,
  /** How many of them one token may have. */
  eventStreamsOfToken: 250,
  /** A stream for whose client this much waits is cut. */
  eventBytesWaiting: 1024 * 1024,
  /** A page of plants or events ends when it reaches this size. */
  pageBytes: 1024 * 1024,
  /** How many plants a search by name examines in one request; fewer if they are large. */
  examinedPlants: 5_000,
  /** How many searches of one token run or wait: one runs at a time. */
  searchesOfToken: 100,
  /** Answers that clients do not read hold this much memory, over all connections. */
  unsentBytes: 128 * 1024 * 1024,
  retryAfterSeconds: 1,
} as const

/** The time limits. They are passed on as a parameter, so that a test can shorten them. */
export interface Timeouts {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  /** How long a client may stop reading. Node checks twice, so the real limit is up to double. */
  readonly stallTimeoutMs: number
  /** How long an idle connection is kept. */
  readonly keepAliveTimeoutMs: number
  /** How long a shutdown keeps serving, so that clients notice that the service is not ready. */
  readonly idleGraceMs: number
  /** How long a shutdown may take, whatever a client does. */
  readonly shutdownMs: number
  /** How long an export may take. While it runs, the store cannot reclaim space. */
  readonly exportMs: number
  /** How long an import may take. */
  readonly importMs: number
  /** How long the client of a stream may read nothing of what waits. */
  readonly unreadMs: number
  /** How often a stream has a comment. */
  readonly commentMs: number
  /** How long the issuer of JSON Web Tokens may take to send its keys. */
  readonly issuerMs: number
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
  importMs: 600_000,
  unreadMs: 30_000,
  commentMs: 10_000,
  issuerMs: 5_000,
}
