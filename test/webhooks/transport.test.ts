import assert from 'node:assert/strict'
import { once } from 'node:events'
import https from 'node:https'
import { createServer, type Socket } from 'node:net'
import { before, describe, it } from 'node:test'
import { openTransport, type TransportOptions } from '../../src/webhooks/transport.ts'
import { type Certificate, issueCertificate } from '../support/certificates.ts'
import { listen } from '../support/listen.ts'
import { releaseAfterTest } from '../support/release.ts'

const timeoutMs = 60_000
const post = { headers: { 'plant-event': 'plant.created' }, body: '{"id":1}', mayWrite: () => true }

/** Starts a receiver that does as it likes with each connection. Answers its address. */
async function openReceiver(onConnection: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => onConnection(socket.on('error', () => {})))
  return `${await listen(server)}/hook?a=b`
}

function open(url: string, options: Partial<TransportOptions> = {}) {
  const transport = openTransport({ url, timeoutMs, ...options })
  releaseAfterTest(transport.close)
  return transport
}

/** Writes the text again and again, at the pace of the reader, until the connection ends. */
function writeForever(socket: Socket, text: string): void {
  const piece = text.repeat(Math.ceil(16_384 / text.length))
  const more = () => socket.write(piece, (error) => error ?? setImmediate(more))
  more()
}

/** Answers every request that arrives in one piece. */
const answering = (answer: string) => (socket: Socket) =>
  socket.on('data', () => socket.write(answer))

describe('a request to a receiver', () => {
  it('is one POST with the body, its length, and the given headers', async () => {
    let received = ''
    const url = await openReceiver((socket) =>
      socket.on('data', (chunk) => {
        received += chunk
        socket.write('HTTP/1.1 204 No Content\r\n\r\n')
      }),
    )
    const outcome = await open(url).post(post)
    assert.deepEqual(outcome, { status: 204, error: undefined, retryAfterMs: 0 })
    const [head = '', body] = received.split('\r\n\r\n')
    assert.match(head, /^POST \/hook\?a=b HTTP\/1\.1\r\n/)
    assert.match(head, /^plant-event: plant\.created$/im)
    assert.match(head, /^content-length: 8$/im)
    assert.equal(body, '{"id":1}')
  })

  it('succeeds with a 2xx, and fails with any other status', async () => {
    for (const status of [200, 201, 202, 204, 226, 299, 300, 307, 400, 404, 410, 429, 500, 599]) {
      const url = await openReceiver(
        answering(
          `HTTP/1.1 ${status} x\r\nLocation: /\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n`,
        ),
      )
      const error = status < 300 ? undefined : `answered ${status}`
      assert.deepEqual(await open(url).post(post), { status, error, retryAfterMs: 7_000 })
    }
  })

  it('reuses a connection, and another one when the receiver has closed it', async () => {
    const sockets: Socket[] = []
    let isClosing = false
    const url = await openReceiver((socket) => {
      sockets.push(socket)
      socket.on('data', () => {
        if (isClosing) socket.resetAndDestroy()
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        isClosing = false
      })
    })
    const transport = open(url)
    await transport.post(post)
    await transport.post(post)
    assert.equal(sockets.length, 1)
    isClosing = true
    assert.equal((await transport.post(post)).status, 200)
    assert.equal(sockets.length, 2)
  })

  it('leaves nothing behind on a connection that is kept', async () => {
    const warnings: string[] = []
    const note = ({ name }: Error) => warnings.push(name)
    process.on('warning', note)
    releaseAfterTest(() => process.off('warning', note))
    const url = await openReceiver(answering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'))
    const transport = open(url)
    // Node warns of more than 10 listeners for one event.
    for (let count = 0; count < 20; count++) await transport.post(post)
    assert.ok(!warnings.includes('MaxListenersExceededWarning'))
  })

  it('keeps no connection whose receiver answers before it has read the body', async () => {
    const url = await openReceiver((socket) =>
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      }),
    )
    const transport = open(url)
    // More than the buffers of the operating system hold.
    const long = { ...post, body: 'x'.repeat(20_000_000) }
    for (let count = 0; count < 2; count++) assert.equal((await transport.post(long)).status, 200)
  })

  it('keeps the connection after an answer of 16 KiB, and ends it with one byte more', async () => {
    const sockets = new Set<Socket>()
    let bytes = 16 * 1024
    const url = await openReceiver((socket) => {
      sockets.add(socket)
      socket.on('data', () => {
        const length = bytes - 42
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`)
      })
    })
    const transport = open(url)
    await transport.post(post)
    await transport.post(post)
    assert.equal(sockets.size, 1)
    bytes++
    assert.equal((await transport.post(post)).status, 200)
    await transport.post(post)
    assert.equal(sockets.size, 2)
  })

  it('is not written once it may not be', async () => {
    let received = 0
    const url = await openReceiver((socket) => socket.on('data', () => received++))
    const outcome = await open(url).post({ ...post, mayWrite: () => false })
    assert.equal(outcome.error, 'broken off')
    assert.equal(received, 0)
  })

  it('is broken off when the transport is closed', async () => {
    const { promise: connected, resolve } = Promise.withResolvers<Socket>()
    const transport = open(await openReceiver(resolve))
    const outcome = transport.post(post)
    const socket = await connected
    await once(socket, 'data')
    transport.close()
    assert.match((await outcome).error ?? '', /closed before an answer/)
    await once(socket, 'close')
  })
})

describe('a hostile receiver', () => {
  const ok = 'HTTP/1.1 200 OK\r\n'
  const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`
  const switched = 'HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'
  const long = 'x'.repeat(999)
  /** What it sends once, what it repeats without end, and why it is given up, if it is. */
  const cases: [what: string, once: string, forever: string, error: RegExp | undefined][] = [
    ['an endless body', `${ok}\r\n`, long, undefined],
    ['endless chunks', chunked, '1\r\nx\r\n', undefined],
    ['an endless chunk extension', `${chunked}1;`, long, undefined],
    ['endless trailers', `${chunked}0\r\n`, 'a: b\r\n', undefined],
    ['headers and no body', `${ok}Content-Length: 5\r\n\r\n`, '', undefined],
    ['endless headers', ok, 'a: b\r\n', /too large/],
    ['a huge header', `${ok}a: `, long, /too large/],
    ['an endless status line', 'HTTP/1.1 200 ', long, /too large/],
    ['endless interim answers', '', 'HTTP/1.1 100 Continue\r\n\r\n', /too large/],
    ['endless early hints', '', 'HTTP/1.1 103 x\r\na: b\r\n\r\n', /too large/],
    ['endless blank lines', '', '\r\n'.repeat(999), /too large/],
    ['another protocol', switched, '', /closed before an answer/],
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n', '', /not HTTP/],
    ['two lengths', `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, '', /not HTTP/],
    ['nothing', '', '', /^no answer within 0\.3 s$/],
    ['half a status', 'HTTP/1.1 20', '', /no answer/],
  ]
  /** All else ends before the usual time, however busy the machine is. */
  const waits: Record<string, number> = { 'headers and no body': 2_000 }

  for (const [what, once, forever, error] of cases) {
    it(`that sends ${what} is ${error === undefined ? 'done with' : 'given up'} in time`, async () => {
      let ended: Promise<unknown> | undefined
      let sent: Socket | undefined
      const url = await openReceiver((socket) => {
        sent = socket
        ended = new Promise((resolve) => socket.on('close', resolve))
        socket.once('data', () => {
          if (once !== '') socket.write(once)
          if (forever !== '') writeForever(socket, forever)
        })
      })
      const ms = waits[what] ?? (/no answer/.test(`${error}`) ? 300 : timeoutMs)
      const outcome = await open(url, { timeoutMs: ms }).post(post)
      if (error === undefined) assert.deepEqual([outcome.status, outcome.error], [200, undefined])
      else assert.match(outcome.error ?? '', error)
      await ended
      assert.ok(Number(sent?.bytesWritten) < 2 * 1024 * 1024, `${sent?.bytesWritten} bytes`)
    })
  }

  it('that is not there is given up', async () => {
    const outcome = await open('http://127.0.0.1:1/').post(post)
    assert.match(outcome.error ?? '', /refused/)
  })
})

describe('a receiver with TLS', () => {
  let authority: Certificate
  before(() => {
    authority = issueCertificate({ subject: 'the authority of the tests' })
  })

  async function openTls(options: { addresses?: string[]; expiresAt?: number }): Promise<string> {
    const usual = { subject: 'a receiver', issuer: authority, addresses: ['127.0.0.1'] }
    const { key, certificate: cert } = issueCertificate({ ...usual, ...options })
    const server = https.createServer({ key, cert }, (_, answer) => answer.end())
    return (await listen(server)).replace('http:', 'https:')
  }

  const certificates: [what: string, options: Parameters<typeof openTls>[0], error: RegExp][] = [
    ['trusted by its certificate', {}, /^$/],
    ['not trusted after that has expired', { expiresAt: Date.now() - 1_000 }, /has expired/],
    ['not trusted with that of another host', { addresses: ['127.0.0.2'] }, /another host/],
  ]
  for (const [what, options, error] of certificates) {
    it(`is ${what}`, async () => {
      const url = await openTls(options)
      const outcome = await open(url, { authorities: [authority.certificate] }).post(post)
      assert.match(outcome.error ?? '', error)
    })
  }

  it('is not trusted with a certificate of an unknown authority, whatever the environment says', async (t) => {
    const url = await openTls({})
    const { emitWarning } = process
    process.emitWarning = () => {}
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    t.after(() => {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      process.emitWarning = emitWarning
    })
    assert.match((await open(url).post(post)).error ?? '', /not trusted/)
  })
})
