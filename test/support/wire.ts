import { connect, type Socket } from 'node:net'
import { releaseAfterTest } from './release.ts'

/** An answer as it came over the wire. */
export interface Answer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

export interface Request {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer
}

/** Longer than any answer takes on a busy machine. */
const answerTimeoutMs = 60_000

/** Writes a request as bytes, with Host and Content-Length unless they are given. */
export function toBytes({ method = 'GET', path = '/', headers = {}, body }: Request): Buffer {
  const fields = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${one}\r\n`),
  )
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  if (!names.includes('host')) fields.push('Host: plants.test\r\n')
  if (
    body !== undefined &&
    !names.includes('content-length') &&
    !names.includes('transfer-encoding')
  ) {
    fields.push(`Content-Length: ${Buffer.byteLength(body)}\r\n`)
  }
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${fields.join('')}\r\n`, 'latin1')
  if (body === undefined) return head
  return Buffer.concat([head, typeof body === 'string' ? Buffer.from(body) : body])
}

/** Opens a connection to a service. It is destroyed with the test, and its errors are ignored. */
export function openSocket(url: string): Socket {
  const socket = connectTo(url)
  socket.on('error', () => {})
  releaseAfterTest(() => socket.destroy())
  return socket
}

/** Opens a connection that stays open, with a way to wait for what the service sends. */
export function openConversation(url: string) {
  const socket = openSocket(url)
  let received = ''
  let look = () => {}
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
    look()
  })
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))

  /** Waits until what came since the last wait matches, or for the end, and answers it. */
  async function waitFor(pattern: RegExp): Promise<string> {
    const matched = new Promise<void>((resolve) => {
      look = () => pattern.test(received) && resolve()
      look()
    })
    await Promise.race([matched, closed])
    const answer = received
    received = ''
    return answer
  }

  return { socket, waitFor, closed }
}

/** The statuses of the answers in a text. */
export function statusesOf(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
}

function connectTo(url: string): Socket {
  const { hostname, port } = new URL(url)
  return connect(Number(port), hostname.replace(/^\[|\]$/g, ''))
}

/**
 * Sends bytes over a connection of their own and answers what came back: this many answers, or all
 * that came before the server closed the connection.
 */
export function exchange(
  url: string,
  bytes: Buffer,
  { answers: wanted = 1, hasNoBody = false } = {},
): Promise<Answer[]> {
  return new Promise((resolve, reject) => {
    const socket = connectTo(url)
    let received = Buffer.alloc(0)
    const timer = setTimeout(() => socket.destroy(new Error('no answer in time')), answerTimeoutMs)
    const parse = () => parseAnswers(received, hasNoBody).filter(({ status }) => status !== 100)
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (parse().length >= wanted) socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(parse())
    })
  })
}

/** Sends one request and answers what it got. */
export async function call(url: string, request: Request): Promise<Answer> {
  const [answer] = await exchange(url, toBytes(request), { hasNoBody: request.method === 'HEAD' })
  if (answer === undefined) throw new Error('the connection was closed without an answer')
  return answer
}

/** Parses the complete answers at the start of the received bytes. */
function parseAnswers(bytes: Buffer, hasNoBody: boolean): Answer[] {
  const answers: Answer[] = []
  let rest = bytes
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) return answers
    const [statusLine = '', ...lines] = rest.toString('latin1', 0, headEnd).split('\r\n')
    const headers = new Map(
      lines.map((line) => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const status = Number(statusLine.split(' ')[1])
    const length = hasNoBody ? 0 : Number(headers.get('content-length') ?? 0)
    const bodyStart = headEnd + 4
    if (rest.length < bodyStart + length) return answers
    answers.push({ status, headers, body: rest.toString('utf8', bodyStart, bodyStart + length) })
    rest = rest.subarray(bodyStart + length)
  }
}
