/** The bounds on requests and connections. They are fixed; the document lists those on requests. */
export const limits = {
  /**
   * The size of a body, and so of a new plant; lines of a file add 64 bytes for the id
   * (transfer/lines.ts). Counts of requests are bounds on memory because of it. Earlier releases
   * stored plants of up to 1 MiB.
   */
  bodyBytes: 8 * 1024,
  jsonDepth: 32,
  headerBytes: 16 * 1024,
  headerFields: 1_000,
  urlBytes: 8 * 1024,
  /** The elements of lists in a request, empty ones included. Clients send a handful. */
  queryPairs: 100,
  entityTags: 100,
  mediaTypeParameters: 32,
  /** A body may arrive in this many chunks, or in more that average this many bytes. */
  bodyChunks: 1_000,
  bodyChunkBytes: 256,
  /** The number of connections that a process accepts. */
  connections: 10_000,
  /**
   * How many requests of one caller may be in progress; a page of plants counts as `pageWeight` of
   * them.
   */
  underWay: 256,
  pageWeight: 16,
  /** How long requests are begun in a turn of the event loop. The rest waits for the next one. */
  turnMs: 2,
  /** How long a request may wait at the gate. */
  gateWaitMs: 5_000,
  /** How long an idempotency key is kept, and how many of them a token may use in that time. */
  keyLifetimeMs: 24 * 60 * 60 * 1000,
  keysOfToken: 10_000_000,
  /** How many imports run at a time. */
  imports: 4,
  /** How many of them one token may have. */
  importsOfToken: 2,
  /** An import ends once it has refused this many lines. */
  refusedLines: 100_000,
  /** A gzipped import may expand to this many bytes plus this multiple of its size. */
  gzipFreeBytes: 1024 * 1024,
  gzipFactor: 100,
  /** How many streams of events a process sends. */
  eventStreams: 1_000,
  /** How many of them one token may have. */
  eventStreamsOfToken: 250,
  /** A live stream with more than this unread gets no more, and is cut after a second. */
  eventBytesWaiting: 1024 * 1024,
  /** A page of plants or events ends when it reaches this size. */
  pageBytes: 1024 * 1024,
  /** How many plants a search by name examines in one request; fewer if they are large. */
  examinedPlants: 5_000,
  /** How many verified tokens are remembered. The longest that fit into the headers take 80 MB. */
  verifiedTokens: 5_000,
  /** Unread answers may hold this much memory, over all connections. */
  unreadBytes: 32 * 1024 * 1024,
  retryAfterSeconds: 1,
} as const

/** The time limits. They are a parameter, so that tests can shorten them. */
export const defaultTimeouts = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** How long a client may stop reading. Node checks twice, so the real limit is up to double. */
  stallTimeoutMs: 15_000,
  /** How long an idle connection is kept: longer than the 60 s of common balancers. */
  keepAliveTimeoutMs: 72_000,
  /** How long a shutdown keeps serving, so that clients notice that the service is not ready. */
  idleGraceMs: 1_000,
  /** The hard limit on a shutdown, whatever clients do. */
  shutdownMs: 9_000,
  /** How long an export may take. While it runs, the store cannot reclaim space. */
  exportMs: 600_000,
  /** How long an import may take. */
  importMs: 600_000,
  /** How often a stream sends a comment to keep the connection alive. */
  commentMs: 10_000,
  /** How long the issuer of JSON Web Tokens may take to send its keys. */
  issuerMs: 5_000,
}

export type Timeouts = Readonly<typeof defaultTimeouts>
