import { connect } from 'node:net'
import type { Answer } from '../../support/wire.ts'

/** Longer than a connection stays open on a busy machine. */
const boundMs = 60_000

/** Sends each piece in a turn of its own, and answers all bytes until the server closes. */
export function collect(port: number, pieces: readonly Buffer[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    const received: Buffer[] = []
    const timer = setTimeout(() => {
      socket.destroy()
      const text = Buffer.concat(received).toString('latin1')
      reject(new Error(`the connection was not closed; received: ${text}`))
    }, boundMs)

    function sendFrom(index: number): void {
      const piece = pieces[index]
      if (piece === undefined || socket.destroyed) return
      socket.write(piece, () => setImmediate(sendFrom, index + 1))
    }

    socket.setNoDelay()
    socket.on('connect', () => sendFrom(0))
    socket.on('data', (chunk: Buffer) => received.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(received))
    })
  })
}

/** An answer, and whether it has no body, as the answer to a HEAD. */
export interface StrictAnswer extends Answer {
  readonly isBodyLess: boolean
}

/**
 * Reads all answers of a connection, and throws when a byte is left over. None of our bodies begins
 * as an answer does, so that what follows an answer shows whether it is one to HEAD.
 */
export function parseStrictly(bytes: Buffer): StrictAnswer[] {
  const answers: StrictAnswer[] = []
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf('\r\n\r\n')
    const head = rest.toString('latin1', 0, headEnd)
    const [statusLine = '', ...lines] = head.split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\w -]+$/.exec(statusLine)?.[1])
    if (headEnd === -1 || Number.isNaN(status)) throw new Error(`not an answer: ${rest}`)
    const headers = new Map(lines.map(toField))
    const after = rest.subarray(headEnd + 4)
    const { body, length, isBodyLess } = readBody(status, headers, after)
    answers.push({ status, headers, body, isBodyLess })
    rest = after.subarray(length)
  }
  return answers
}

function toField(line: string): [string, string] {
  const [, name, value] = /^([\w-]+): (.*)$/.exec(line) ?? []
  if (name === undefined || value === undefined) throw new Error(`not a header field: ${line}`)
  return [name.toLowerCase(), value]
}

const none = { body: '', length: 0, isBodyLess: true }

function readBody(status: number, headers: ReadonlyMap<string, string>, rest: Buffer) {
  if (status < 200 || status === 204 || status === 304) return none
  if (rest.length === 0 || rest.subarray(0, 9).toString('latin1') === 'HTTP/1.1 ') return none
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(rest)
  const length = Number(headers.get('content-length') ?? rest.length)
  if (rest.length < length) throw new Error(`a truncated answer: ${rest}`)
  return { body: rest.toString('utf8', 0, length), length, isBodyLess: false }
}

function readChunks(rest: Buffer): typeof none {
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size =
      lineEnd === -1 ? Number.NaN : Number.parseInt(rest.toString('latin1', at, lineEnd), 16)
    const next = lineEnd + 2 + size + 2
    if (Number.isNaN(size) || next > rest.length) throw new Error(`truncated chunks: ${rest}`)
    if (size === 0)
      return { body: Buffer.concat(chunks).toString(), length: next, isBodyLess: false }
    chunks.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = next
  }
}
