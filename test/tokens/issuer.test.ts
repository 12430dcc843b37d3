import assert from 'node:assert/strict'
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import type { JWK } from 'jose'
import { type Clock, stopClock } from '../support/clock.ts'
import { readEvents } from '../support/event-stream.ts'
import {
  type IssuerKey,
  newKey,
  nowSeconds,
  startIssuer,
  type TestIssuer,
  toClaims,
} from '../support/issuer.ts'
import { lowerLimit } from '../support/limits.ts'
import {
  ask,
  numberFor,
  operatorToken,
  startService,
  type TestService,
} from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'

const memory = 'sqlite::memory:'

/** Starts a service that trusts an issuer, and has its keys. */
async function startTrusting(issuer: TestIssuer, env = {}): Promise<TestService> {
  const timeouts = { issuerMs: 60_000 }
  const service = await startService(memory, { env: { ...issuer.env, ...env }, timeouts })
  const unknown = await issuer.sign(await newKey('ES256', 'none'))
  await ask(service, unknown)
  return service
}

function encode(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return Buffer.from(text).toString('base64url')
}

/** Signs any text as claims, below any text as a header. */
function signText(header: string, claims: string, key: KeyObject, hash = 'sha256'): string {
  const text = `${header}.${claims}`
  return `${text}.${createSign(hash).update(text).sign(key, 'base64url')}`
}

/** The time after which the issuer may be asked again. jose reads the wall clock. */
function pass(clock: Clock, ms = 30_000): void {
  clock.advance(ms)
  clock.stepWall(ms)
}

const fail: TestIssuer['answer'] = (_, response) => {
  response.writeHead(500).end()
  return true
}

const rsa = await newKey('RS256')
const node = generateKeyPairSync('rsa', { modulusLength: 2048 })
const issuer = await startIssuer([rsa])
issuer.keys.push({ ...(node.publicKey.export({ format: 'jwk' }) as JWK), kid: 'node' })
const service = await startTrusting(issuer)

describe('JSON Web Tokens', () => {
  const plain = { alg: 'RS256', kid: 'node' }
  const toText = (claims: object) => JSON.stringify({ ...toClaims(issuer.url), ...claims })

  describe('are judged by their claims', () => {
    const now = nowSeconds()
    const cases: [name: string, claims: object, error: number][] = [
      ['no audience', { aud: undefined }, 40101],
      ['another issuer', { iss: 'https://issuer.test' }, 40101],
      ['no expiry', { exp: undefined }, 40101],
      ['an expiry that is text', { exp: String(now + 600) }, 40101],
      ['an expiry within the leeway', { exp: now - 5 }, 40401],
      ['an expiry beyond the leeway', { exp: now - 31 }, 40102],
      ['a subject that is a number', { sub: 7 }, 40101],
      ['no subject', { sub: undefined }, 40401],
      ['scopes in scp, as text', { scope: undefined, scp: 'openid plants:read' }, 40401],
      ['scopes in scp, as an array', { scope: undefined, scp: ['plants:read'] }, 40401],
      ['only a scope for writing', { scope: 'openid plants:write' }, 40300],
      ['a scope that only begins like ours', { scope: 'plants:reads' }, 40300],
      ['scopes that are a number', { scope: 7 }, 40300],
      ['no scopes', { scope: undefined }, 40300],
    ]
    for (const [name, claims, error] of cases) {
      it(name, async () => {
        assert.equal(await numberFor(service, await issuer.sign(rsa, claims)), error)
      })
    }

    it('an expiry beyond all numbers', async () => {
      const claims = toText({}).replace(/"exp":\d+/, '"exp":1e999')
      const token = signText(encode(plain), encode(claims), node.privateKey)
      assert.equal(await numberFor(service, token), 40101)
    })
  })

  it('are refused unsigned and by another algorithm, without a request to anybody', async () => {
    const before = issuer.asked.length
    const claims = encode(toText({}))
    const unsigned = `${encode({ alg: 'none' })}.${claims}.`
    const other = signText(encode({ ...plain, alg: 'RS512' }), claims, node.privateKey, 'sha512')
    for (const token of [unsigned, other]) {
      const { error, headers } = await ask(service, token)
      assert.equal(error, 40101)
      assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"/)
    }
    assert.equal(issuer.asked.length, before)
  })

  it('have one spelling', async () => {
    const token = await issuer.sign(rsa)
    assert.equal(await numberFor(service, token), 40401)
    const [header = '', claims = '', signature = ''] = token.split('.')
    // 256 bytes leave 4 bits of the last character unused.
    assert.match(signature, /[AQgw]$/)
    const stray: Record<string, string> = { A: 'B', Q: 'R', g: 'h', w: 'x' }
    const strayBits = signature.replace(/.$/, (last) => stray[last] ?? '')
    for (const spelling of [` ${signature}`, `${signature}=`, strayBits]) {
      assert.equal(await numberFor(service, `${header}.${claims}.${spelling}`), 40101, spelling)
    }
    // An issuer may spell what it signs in another way, but then two readers may disagree.
    const loose = signText(`${encode(plain)}=`, claims, node.privateKey)
    assert.equal(await numberFor(service, loose), 40101)
  })

  it('work beside the tokens of the store and of the operator', async () => {
    assert.equal(await numberFor(service, operatorToken), 40401)
    assert.equal(await numberFor(service, 'plst_0'), 40101)
    const dotted = await startTrusting(issuer, { PLANT_STORE_TOKEN: 'an.operator.token-of-parts' })
    assert.equal(await numberFor(dotted, 'an.operator.token-of-parts'), 40401)
    const without = await startService(memory)
    assert.equal(await numberFor(without, await issuer.sign(rsa)), 40101)
  })

  it('count by issuer and subject, in the rate limit, the journal and the log', async () => {
    const limited = await startTrusting(issuer, { RATE_LIMIT: '2/h', LOG_LEVEL: 'debug' })
    const create = async (id: number, sub: string) => {
      // The text differs, so that no two tokens are the same.
      const token = await issuer.sign(rsa, { sub, jti: String(id) })
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      const body = `{"id":${id},"name":"x"}`
      const { status } = await call(limited.url, { method: 'POST', path: '/plants', headers, body })
      return { token, status }
    }
    const made = [await create(1, 'alice'), await create(2, 'alice'), await create(3, 'alice')]
    made.push(await create(4, 'bob'))
    const statuses = made.map(({ status }) => status)
    assert.deepEqual(statuses, [200, 200, 429, 200])
    const page = await limited.store.readJournal('oldest', 10)
    assert.ok(typeof page !== 'string')
    const ids = page.events.map(({ tokenId = '' }) => tokenId)
    assert.equal(ids[0], ids[1])
    assert.notEqual(ids[0], ids[2])
    for (const id of ids) assert.match(id, /^jwt-[0-9a-f]{32}$/)
    await limited.close()
    const log = limited.log.join('')
    assert.ok(log.includes(ids[0] as string))
    for (const { token } of made) assert.ok(!log.includes(token.split('.')[2] as string))
  })

  it('end their streams when they expire', async (t) => {
    const clock = stopClock(t)
    const token = await issuer.sign(rsa, { exp: nowSeconds() + 60 })
    const stream = await readEvents(service.url, '', { Authorization: `Bearer ${token}` })
    assert.equal(stream.response.statusCode, 200)
    clock.stepWall(60_000)
    assert.equal(await numberFor(service, token), 40401)
    // Beyond the leeway.
    clock.stepWall(30_000)
    await stream.ended
    assert.equal(await numberFor(service, token), 40102)
  })

  it('are verified once, though they are used often', async (t) => {
    const verified = t.mock.method(crypto.subtle, 'verify')
    const token = await issuer.sign(rsa, { jti: 'often' })
    await waitUntil(async () => {
      verified.mock.resetCalls()
      await numberFor(service, token)
      return verified.mock.callCount() === 0
    }, 'it is remembered')
    for (let count = 0; count < 20; count++) await numberFor(service, token)
    assert.equal(verified.mock.callCount(), 0)
  })
})

describe('a token without the name of its key', () => {
  it('is tried with every key of its type, and with new ones', async (t) => {
    const [first, second, third] = await Promise.all([1, 2, 3].map((n) => newKey('RS256', `${n}`)))
    assert.ok(first && second && third)
    const issuer = await startIssuer([await newKey('ES256'), first])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    const sign = (key: IssuerKey, claims = {}) => issuer.sign(key, claims, { kid: undefined })
    assert.equal(await numberFor(service, await sign(first)), 40401)
    assert.equal(await numberFor(service, await sign(second)), 40101)
    issuer.keys = [first.jwk, second.jwk]
    pass(clock)
    const before = issuer.asked.length
    for (const key of [second, first]) {
      assert.equal(await numberFor(service, await sign(key)), 40401)
      assert.equal(await numberFor(service, await sign(key, { aud: 'other' })), 40101)
      assert.equal(await numberFor(service, await sign(key, { exp: 1 })), 40102)
    }
    for (let count = 0; count < 20; count++) {
      assert.equal(await numberFor(service, await sign(third, { jti: count })), 40101)
    }
    assert.equal(issuer.asked.length, before + 2)
    issuer.answer = fail
    pass(clock)
    assert.equal(await numberFor(service, await sign(third)), 50302)
    assert.equal(await numberFor(service, await sign(second, { jti: 'new' })), 40401)
  })
})

describe('the keys of an issuer', () => {
  it('that cannot be used are a fault, which the log explains', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const issuer = await startIssuer([await newKey('ES256')])
    issuer.keys.push({ ...(weak.publicKey.export({ format: 'jwk' }) as JWK), kid: 'weak' })
    const service = await startTrusting(issuer)
    const header = encode({ alg: 'RS256', kid: 'weak' })
    const token = signText(header, encode(toClaims(issuer.url)), weak.privateKey)
    assert.equal(await numberFor(service, token), 50000)
    assert.ok(service.log.some((line) => line.includes('modulusLength')))
  })

  it('are asked for again when one is unknown, once in 30 s', async (t) => {
    const [first, second] = [await newKey('ES256', 'first'), await newKey('ES256', 'second')]
    const issuer = await startIssuer([first])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    const token = await issuer.sign(second)
    assert.equal(await numberFor(service, token), 40101)
    issuer.keys.push(second.jwk)
    const before = issuer.asked.length
    const flood = async () => {
      for (let count = 0; count < 50; count++) {
        const unknown = await issuer.sign(first, {}, { kid: `unknown-${count}` })
        assert.equal(await numberFor(service, unknown), 40101)
      }
    }
    await flood()
    assert.equal(issuer.asked.length, before)
    pass(clock)
    assert.equal(await numberFor(service, token), 40401)
    await flood()
    assert.deepEqual(issuer.asked.slice(before), ['/.well-known/openid-configuration', '/keys'])
    assert.equal(await numberFor(service, await issuer.sign(first)), 40401)
  })

  it('hold up no other token while they are fetched, however many wait for them', async (t) => {
    lowerLimit(t, 'underWay', 16)
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    const held: ServerResponse[] = []
    issuer.answer = (_, response) => held.push(response) > 0
    // Nothing but its answer ends the wait.
    const timeouts = { issuerMs: 600_000 }
    const service = await startService(memory, { env: issuer.env, timeouts })
    const { token } = await service.issue()
    const tokens = Array.from({ length: 100 }, (_, jti) => issuer.sign(key, { jti: `${jti}` }))
    let refused = 0
    const waiting = (await Promise.all(tokens)).map(async (one) => {
      assert.equal(await numberFor(service, one), 50302)
      refused++
    })
    assert.equal(await numberFor(service, token), 40401)
    assert.equal(refused, 0)
    for (const response of held) response.writeHead(500).end()
    await Promise.all(waiting)
  })

  it('are no longer taken after they are withdrawn, not even for tokens seen before', async (t) => {
    const [old, current] = [await newKey('ES256', 'old'), await newKey('ES256', 'current')]
    const issuer = await startIssuer([old, current])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    const token = await issuer.sign(old)
    assert.equal(await numberFor(service, token), 40401)
    const stream = await readEvents(service.url, '', { Authorization: `Bearer ${token}` })
    issuer.keys.shift()
    // No token with an unknown key asks for them.
    clock.advance(10 * 60_000)
    await stream.ended
    assert.equal(await numberFor(service, token), 40101)
    assert.equal(await numberFor(service, await issuer.sign(current)), 40401)
  })

  it('stay while the issuer is away; a token of an unknown one is answered 503', async (t) => {
    const [old, current] = [await newKey('ES256', 'old'), await newKey('ES256', 'current')]
    const issuer = await startIssuer([old])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    const token = await issuer.sign(current)
    issuer.answer = fail
    pass(clock)
    const before = issuer.asked.length
    for (let count = 0; count < 20; count++) {
      const { status, error, headers } = await ask(service, token)
      assert.deepEqual([status, error, headers.get('retry-after')], [503, 50302, '30'])
    }
    assert.equal(issuer.asked.length, before + 1)
    assert.equal(await numberFor(service, await issuer.sign(old)), 40401)
    assert.equal(await numberFor(service, operatorToken), 40401)
    // The keys have moved, and one is withdrawn.
    issuer.answer = ({ url }, response) => {
      if (url !== '/.well-known/openid-configuration') return false
      response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/moved?p=1` }))
      return true
    }
    issuer.keys = [current.jwk]
    pass(clock)
    assert.equal(await numberFor(service, token), 40401)
    assert.equal(issuer.asked.at(-1), '/moved?p=1')
    assert.equal(await numberFor(service, await issuer.sign(old)), 40101)
    const lines = service.log.filter((line) => line.includes('issuer of JSON Web Tokens'))
    assert.equal(lines.length, 2)
  })

  const sendKeys = (text: string): TestIssuer['answer'] => {
    return ({ url }, response) => url === '/keys' && response.end(text) !== undefined
  }
  const sendDiscovery = (members: object): TestIssuer['answer'] => {
    return ({ headers }, response) =>
      response.end(JSON.stringify({ issuer: `http://${headers.host}`, ...members })) !== undefined
  }
  const faults: [name: string, answer: TestIssuer['answer'], cause: RegExp][] = [
    ['hangs', () => true, /timeout/],
    [
      'redirects',
      ({ url }, response) =>
        response.writeHead(302, { Location: `${url}?again` }).end() !== undefined,
      /answers 302/,
    ],
    ['sends 1 MB of keys', sendKeys(' '.repeat(1_000_000)), /more than 262144 characters/],
    ['sends keys that are none', sendKeys('{"keys":"none"}'), /malformed/],
    ['calls itself by another name', sendDiscovery({ issuer: 'https://o.test' }), /another issuer/],
    ['has keys without https', sendDiscovery({ jwks_uri: 'http://o.test/keys' }), /no jwks_uri/],
  ]
  for (const [name, answer, cause] of faults) {
    it(`are unknown while the issuer ${name}; other tokens work`, async (t) => {
      const key = await newKey('ES256')
      const issuer = await startIssuer([key])
      issuer.answer = answer
      // Only those that never end are waited for to the last.
      const issuerMs = cause.source === 'timeout' ? 300 : 30_000
      const service = await startService(memory, { env: issuer.env, timeouts: { issuerMs } })
      const waiting = ask(service, await issuer.sign(key))
      assert.equal(await numberFor(service, operatorToken), 40401)
      const { status, error } = await waiting
      assert.deepEqual([status, error], [503, 50302])
      const asked = issuer.asked.length
      assert.equal(await numberFor(service, await issuer.sign(key)), 50302)
      assert.equal(issuer.asked.length, asked)
      const [line = ''] = service.log.filter((one) => one.includes('cannot be asked'))
      assert.match(line, cause)
      issuer.answer = () => false
      pass(stopClock(t))
      assert.equal(await numberFor(service, await issuer.sign(key)), 40401)
    })
  }
})
