/**
 * The attacks of bench/attacks.ts, and the process that runs one of them until it is killed. It
 * tells its parent once the connections are open.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** What an attacker has: a token of the store, and JSON Web Tokens of one subject. */
export interface Tokens {
  readonly stored: string
  readonly web: readonly string[]
}

export interface Attack {
  readonly title: string
  /** The bytes that a connection sends, by its number. */
  readonly toBytes: (at: number, tokens: Tokens) => string
  /**
   * What comes next: the same after each answer, or nothing; `unread` never reads, `endless` sends
   * as fast as it can, `trickle` a few chunks of a byte at a time.
   */
  readonly next: 'again' | 'nothing' | 'unread' | 'endless' | 'endless chunks' | 'trickle'
  /** How many connections it has, unless that is varied. */
  readonly connections?: number
  /** Whether more connections come in all the time, which send nothing. */
  readonly hasNewcomers?: boolean
  /** Whether the short form has it with every number of connections. */
  readonly isVaried?: boolean
}

function toRequest(line: string, headers: Record<string, string> = {}, body?: string): string {
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const fields = Object.entries({ Host: 'a', ...headers, ...length })
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return `${line} HTTP/1.1\r\n${head}\r\n${body ?? ''}`
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
export const json = { 'Content-Type': 'application/json' }
const long = { ...json, 'Content-Length': '8192' }
const chunked = { 'Transfer-Encoding': 'chunked' }
const stored = (line: string, headers = {}, body?: string) => {
  return (_: number, tokens: Tokens) =>
    toRequest(line, { ...bearer(tokens.stored), ...headers }, body)
}
const anonymous = (line: string, headers = {}, body?: string) => {
  const bytes = toRequest(line, headers, body)
  return () => bytes
}
const refused = (path: string, type: string, lines: string) =>
  stored(`POST ${path}`, { 'Content-Type': type }, lines)
const mebibyte = (line: string, head = '') => head + line.repeat(2 ** 20 / line.length)
const csv = 'id,name,tag\n'

export const control: Attack = {
  title: 'control: gets without a token',
  toBytes: anonymous('GET /plants/1'),
  next: 'again',
}

export const attacks: readonly Attack[] = [
  {
    title: 'creates without a token',
    toBytes: anonymous('POST /plants', json, '{}'),
    next: 'again',
    isVaried: true,
  },
  { title: 'preflights', toBytes: anonymous('OPTIONS /plants'), next: 'again', isVaried: true },
  {
    title: 'a connection for each request',
    toBytes: anonymous('GET /healthz', { Connection: 'close' }),
    next: 'again',
    connections: 100,
  },
  {
    title: 'upgrades',
    toBytes: anonymous('GET /healthz', { Connection: 'Upgrade', Upgrade: 'foo' }),
    next: 'again',
    connections: 100,
  },
  {
    title: 'invented tokens',
    toBytes: (at) => toRequest('GET /plants/1', bearer(`invented-${at}`)),
    next: 'again',
    isVaried: true,
  },
  {
    title: 'creates without a token, and new connections',
    toBytes: anonymous('POST /plants', json, '{}'),
    next: 'again',
    hasNewcomers: true,
  },
  { title: 'broken JSON', toBytes: stored('PUT /plants/1', json, '{"name":'), next: 'again' },
  {
    title: 'lists with renewed tokens of one subject',
    toBytes: (at, { web }) =>
      toRequest('GET /plants?limit=1000', bearer(web[at % web.length] ?? '')),
    next: 'again',
  },
  {
    title: 'gets with a token in many spellings',
    toBytes: (at, { web }) =>
      toRequest('GET /plants/1', bearer(' '.repeat(at % 500) + web[0] + '='.repeat(at % 2))),
    next: 'again',
  },
  { title: 'searches', toBytes: stored('GET /plants?name=zz'), next: 'again' },
  {
    title: 'idle connections, more than there may be',
    toBytes: anonymous('GET /healthz'),
    next: 'nothing',
    connections: 10_500,
  },
  {
    title: 'a query of separators',
    toBytes: stored(`GET /plants?limit=1${'&'.repeat(8_150)}`),
    next: 'again',
  },
  {
    title: 'a media type of semicolons',
    toBytes: stored('PUT /plants/1', { 'Content-Type': json['Content-Type'] + ';'.repeat(14_000) }),
    next: 'again',
  },
  {
    title: 'entity tags of commas',
    toBytes: stored('GET /plants/1', { 'If-None-Match': ','.repeat(14_000) }),
    next: 'again',
  },
  {
    title: 'encodings of semicolons, without a token',
    toBytes: anonymous('GET /docs', { 'Accept-Encoding': `gzip${';'.repeat(14_000)}` }),
    next: 'again',
  },
  {
    title: 'accepted types of semicolons',
    toBytes: stored('GET /events', { Accept: `text/event-stream${';'.repeat(14_000)}` }),
    next: 'again',
  },
  {
    title: 'bodies that stop',
    toBytes: (_, { stored }) => `${toRequest('PUT /plants/1', { ...bearer(stored), ...long })}{`,
    next: 'nothing',
  },
  {
    title: 'bodies that never end',
    toBytes: anonymous('POST /plants', { ...json, 'Content-Length': '1000000000000' }),
    next: 'endless',
  },
  {
    title: 'bodies in chunks of one byte',
    toBytes: stored('POST /plants', { ...json, ...chunked }),
    next: 'trickle',
  },
  {
    title: 'imports in chunks of one byte',
    toBytes: stored('POST /plants.ndjson', { 'Content-Type': 'application/x-ndjson', ...chunked }),
    next: 'endless chunks',
    connections: 4,
  },
  {
    title: 'lists that are not read',
    toBytes: (_, { stored }) => toRequest('GET /plants?limit=1000', bearer(stored)).repeat(20),
    next: 'unread',
  },
  { title: 'exports that are not read', toBytes: stored('GET /plants.ndjson'), next: 'unread' },
  {
    title: 'events that are not read',
    toBytes: stored('GET /events', { Accept: 'text/event-stream' }),
    next: 'unread',
    connections: 200,
  },
  {
    title: 'pipelined requests, not read',
    toBytes: (_, { stored }) => toRequest('GET /openapi.json', bearer(stored)).repeat(20),
    next: 'unread',
  },
  {
    title: 'pipelined requests, as many as are read at once',
    toBytes: () => anonymous('GET /docs')().repeat(2_000),
    next: 'again',
    connections: 100,
  },
  {
    title: 'followers from the oldest change',
    toBytes: stored('GET /events', { Accept: 'text/event-stream' }),
    next: 'nothing',
    connections: 100,
  },
  {
    title: 'imports of refused lines, NDJSON',
    toBytes: refused('/plants.ndjson', 'application/x-ndjson', mebibyte('x\n')),
    next: 'again',
    connections: 2,
  },
  {
    title: 'imports of refused lines, CSV',
    toBytes: refused('/plants.csv', 'text/csv', mebibyte(',,,\n', csv)),
    next: 'again',
    connections: 2,
  },
]

if (process.send !== undefined) {
  const [title, port = '', connections = ''] = process.argv.slice(2)
  const attack = [control, ...attacks].find((one) => one.title === title) as Attack
  // Listening keeps the process: connections that nobody reads would not.
  process.on('message', (tokens) =>
    runAttack(attack, Number(port), Number(connections), tokens as Tokens),
  )
}

async function runAttack(attack: Attack, port: number, count: number, tokens: Tokens) {
  const opened: Promise<unknown>[] = []
  for (let at = 0; at < count; at++) {
    const bytes = Buffer.from(attack.toBytes(at, tokens))
    opened.push(once(attackOn(port, attack.next, bytes), 'connect'))
    // The backlog of the port is bounded.
    if (at % 200 === 199) await Promise.allSettled(opened)
  }
  await Promise.allSettled(opened)
  process.send?.('ready')
  if (attack.hasNewcomers) {
    setInterval(() => {
      for (let more = 0; more < 10; more++) connect(port, '127.0.0.1').on('error', () => {})
    }, 50)
  }
}

const largePiece = Buffer.alloc(64 * 1024, 'x')
const manyChunks = '1\r\nx\r\n'.repeat(10_000)
const smallChunks = '1\r\nx\r\n'.repeat(10)

/** Opens a connection, and another one when it is closed, unless nothing follows its bytes. */
function attackOn(port: number, next: Attack['next'], bytes: Buffer): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  if (next === 'nothing') socket.resume()
  else if (next === 'again') {
    socket.on('data', (part) => {
      // A long answer comes in several parts.
      if (part.toString('latin1', 0, 8) === 'HTTP/1.1') socket.write(bytes)
    })
  } else if (next.startsWith('endless')) {
    const piece = next === 'endless' ? largePiece : manyChunks
    const writeOn = () => {
      while (socket.writable && socket.write(piece));
    }
    socket.resume().on('drain', writeOn).once('connect', writeOn)
  } else if (next === 'trickle') {
    const timer = setInterval(() => socket.writable && socket.write(smallChunks), 100)
    socket.resume().once('close', () => clearInterval(timer))
  }
  socket.write(bytes)
  if (next !== 'nothing') {
    socket.once('close', () => setTimeout(attackOn, 100, port, next, bytes))
  }
  return socket
}
