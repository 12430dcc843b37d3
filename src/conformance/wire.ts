import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** A request, byte by byte: nothing in it is corrected on the way out. */
export interface Request {
  readonly method?: string
  readonly path: string
  /** Beside `Host` and `Connection`, which are added unless they are given. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer | undefined
  /** The version in the request line. */
  readonly version?: string
}

export interface Answer {
  readonly status: number
  /** The fields by their names in lower case. Several with one name are joined by commas. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** Whether the body has ended where its framing says. */
  readonly isWhole: boolean
}

export interface SendOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Ends the exchange early, for an answer that has no end. */
  readonly until?: ((answer: Answer) => boolean) | undefined
}

const maxAnswerBytes = 8 * 1024 * 1024

/** Writes a request as bytes, for a connection of its own. */
export function toBytes(request: Request, base: URL): Buffer {
  const { method = 'GET', path, headers = {}, body, version = 'HTTP/1.1' } = request
  const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  const all: [string, string | readonly string[]][] = Object.entries(headers)
  if (!given.has('host')) all.unshift(['Host', base.host])
  if (!given.has('connection')) all.push(['Connection', 'close'])
  if (body !== undefined && !given.has('content-length') && !given.has('transfer-encoding')) {
    all.push(['Content-Length', `${Buffer.byteLength(body)}`])
  }
  const lines = all.flatMap(([name, values]) => [values].flat().map((one) => `${name}: ${one}\r\n`))
  const target = `${base.pathname.replace(/\/$/, '')}${path}`
  const head = Buffer.from(`${method} ${target} ${version}\r\n${lines.join('')}\r\n`, 'latin1')
  return Buffer.concat([head, Buffer.from(body ?? '')])
}

/** Sends bytes over a connection of their own. Resolves with what came back, if anything did. */
export function send(
  base: URL,
  bytes: Buffer,
  { timeoutMs, signal, until }: SendOptions,
): Promise<Answer | undefined> {
  const hasNoBody = bytes.subarray(0, 5).toString() === 'HEAD '
  return new Promise((resolve, reject) => {
    const socket = openSocket(base)
    let received = Buffer.alloc(0)
    const parse = (end?: 'closed') => parseAnswer(received, { hasNoBody, isClosed: !!end })
    const stop = () => socket.destroy(new Error('the run was stopped, or its time is over'))
    const timer = setTimeout(() => socket.destroy(), timeoutMs)
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()

    socket.write(bytes)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      const answer = parse()
      if (answer === undefined) return
      if (answer.isWhole || until?.(answer) || received.length > maxAnswerBytes) socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A server may answer before it has read everything, and close.
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve(parse('closed'))
    })
  })
}

function openSocket(base: URL): Socket {
  const host = base.hostname.replace(/^\[|\]$/g, '')
  if (base.protocol === 'http:') return connect(Number(base.port || 80), host)
  const servername = isIP(host) ? '' : host
  return connectTls({ port: Number(base.port || 443), host, servername })
}

interface Framing {
  readonly hasNoBody: boolean
  /** Whether the server has closed the connection, which ends a body without a length. */
  readonly isClosed: boolean
}

/** The final answer at the start of the bytes, as far as it has come. */
function parseAnswer(bytes: Buffer, framing: Framing): Answer | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1] ?? 0)
  const rest = bytes.subarray(headEnd + 4)
  if (status >= 100 && status < 200) return parseAnswer(rest, framing)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  // Whatever follows the head of an answer that has no body is too much, and is kept to be seen.
  const isEmpty = framing.hasNoBody || status === 204 || status === 304
  const body = isEmpty ? { body: rest, isWhole: true } : parseBody(rest, headers, framing)
  return { status, headers, ...body }
}

type Body = Pick<Answer, 'body' | 'isWhole'>

function parseBody(rest: Buffer, headers: Answer['headers'], { isClosed }: Framing): Body {
  if (headers.get('transfer-encoding') === 'chunked') return parseChunks(rest)
  const length = headers.get('content-length')
  if (length === undefined) return { body: rest, isWhole: isClosed }
  return { body: rest.subarray(0, Number(length)), isWhole: rest.length >= Number(length) }
}

function parseChunks(bytes: Buffer): Body {
  const chunks: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const isCut = lineEnd === -1 || !(size >= 0) || bytes.length < lineEnd + 2 + size
    if (isCut || size === 0) return { body: Buffer.concat(chunks), isWhole: !isCut }
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
