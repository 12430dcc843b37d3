/**
 * What JSON Web Tokens cost: a get with one that is known, as a ratio to one with a token of the
 * store, in turn in one service; the first request with a new one; hostile ones; and the memory of
 * those that are remembered. In CPU time of the service, over all of its threads.
 *
 *   npx node bench/experiments/web-tokens.ts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { type IssuerKey, newKey, startIssuer } from '../../test/support/issuer.ts'
import { median, quantile } from '../figures.ts'
import { forkService } from './fork-service.ts'

const connections = 32
const rounds = 60
const requestsPerSlice = 3_000
const newTokens = 2_000

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const url = `sqlite:${join(folder, 'plants.db')}`
const store = await openStore(toStoreLocation(url) as StoreLocation)
await store.createPlant({ id: 1n, name: 'Monstera deliciosa', tag: 'indoor' })
const own = await issueToken(store, {
  name: 'bench',
  scopes: ['plants:read'],
  lifetimeMs: undefined,
})
await store.close()

const keys = await Promise.all(['RS256', 'PS256', 'ES256', 'EdDSA'].map((alg) => newKey(alg)))
const issuer = await startIssuer(keys)
const service = await forkService(url, process.execArgv, issuer.env)
const sockets: Socket[] = await Promise.all(
  Array.from({ length: connections }, async () => {
    const socket = connect(service.port, '127.0.0.1').setNoDelay()
    await once(socket, 'connect')
    return socket
  }),
)

function toGet(token: string, more = ''): string {
  return `GET /plants/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n${more}Authorization: Bearer ${token}\r\n\r\n`
}

/** Sends requests, one at a time on each connection. Returns the CPU time of each in µs. */
async function measure(count: number, next: () => string, status = '200'): Promise<number> {
  const before = await service.read('cpuUs')
  let sent = 0
  await Promise.all(
    sockets.map(async (socket) => {
      while (sent++ < count) {
        socket.write(next())
        const [answer] = (await once(socket, 'data')) as [Buffer]
        const line = answer.toString('latin1', 9, 12)
        if (line !== status) throw new Error(`answered ${answer}`)
      }
    }),
  )
  return ((await service.read('cpuUs')) - before) / count
}

/** A text that cannot be compressed or guessed, as claims of this many bytes. */
const pad = (bytes: number) => randomBytes(bytes / 2).toString('hex')
const sign = (key: IssuerKey, claims = {}) => issuer.sign(key, { jti: pad(16), ...claims })
const [rsa, , , ed] = keys as [IssuerKey, IssuerKey, IssuerKey, IssuerKey]
const known = await sign(rsa, { email: 'gardener@plants.test', groups: pad(300) })
const padding = `X-Padding: ${'x'.repeat(known.length - own.token.length)}\r\n`
const short = await sign(ed)
const kinds = {
  own: () => toGet(own.token),
  padded: () => toGet(own.token, padding),
  known: () => toGet(known),
  short: () => toGet(short),
}
const names = Object.keys(kinds) as (keyof typeof kinds)[]
const costs = new Map(names.map((name) => [name, [] as number[]]))
for (let round = -10; round < rounds; round++) {
  for (const name of round % 2 ? names : names.toReversed()) {
    const cost = await measure(requestsPerSlice, kinds[name])
    if (round >= 0) costs.get(name)?.push(cost)
  }
}
console.log(`a get, ${rounds} rounds: CPU time, and its ratios to "own" and to "padded"
  own: a token of the store; padded: with as many bytes as "known" in another header
  known: a token of ${known.length} characters (RS256); short: of ${short.length} (EdDSA)`)
for (const name of names) {
  const cost = costs.get(name) as number[]
  const ratios = (['own', 'padded'] as const).map((base) => {
    const others = costs.get(base) as number[]
    const each = cost.map((one, round) => one / (others[round] as number))
    const [low, high] = [quantile(each, 0.25), quantile(each, 0.75)]
    return `${median(each).toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`
  })
  console.log(`  ${name}: ${median(cost).toFixed(1)} µs, ${ratios.join(', ')}`)
}

console.log('the first request with a token')
for (const key of keys) {
  const tokens = await Promise.all(Array.from({ length: newTokens }, () => sign(key)))
  const cost = await measure(newTokens, () => toGet(tokens.pop() ?? known))
  console.log(`  ${key.alg}: ${cost.toFixed(0)} µs`)
}

console.log('a hostile request')
const [header = '', claims = '', signature = ''] = known.split('.')
const encode = (text: string) => Buffer.from(text).toString('base64url')
const long = 11_000
const hostile: Record<string, () => string> = {
  'wrong signature': () => `${header}.${claims}.${randomBytes(256).toString('base64url')}`,
  'unknown kid': () => `${encode(`{"alg":"RS256","kid":"${pad(32)}"}`)}.${claims}.${signature}`,
  'kid of 11 KB': () => `${encode(`{"alg":"RS256","kid":"${pad(long)}"}`)}.${claims}.${signature}`,
  'header of 11 KB of names': () =>
    `${encode(`{${Array.from({ length: 1_100 }, (_, at) => `"${at}":[]`)}}`)}.${claims}.`,
  'claims of 11 KB, wrong signature': () => `${header}.${encode(pad(long))}.${signature}`,
  'three parts of nothing': () => '..',
}
for (const [name, make] of Object.entries(hostile)) {
  const made = Array.from({ length: 200 }, make)
  let at = 0
  const cost = await measure(newTokens, () => toGet(made[at++ % made.length] as string), '401')
  console.log(`  ${name}: ${cost.toFixed(0)} µs`)
}

console.log('resident memory, in MB')
const show = async (title: string) =>
  console.log(`  ${title}: ${(await service.read('rssMb')).toFixed(0)}`)
await show('before')
for (const [count, bytes] of [
  [12_000, 600],
  [4_000, 7_500],
] as const) {
  for (let left = count; left > 0; left -= 1_000) {
    const some = Array.from({ length: 1_000 }, () => sign(ed, { groups: pad(bytes) }))
    const tokens = await Promise.all(some)
    await measure(1_000, () => toGet(tokens.pop() ?? known))
  }
  await show(`after ${count} tokens with ${bytes} bytes of claims`)
}
service.kill()
rmSync(folder, { recursive: true })
process.exit()
