import assert from 'node:assert/strict'
import { createHmac, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CryptoKey, exportSPKI, importJWK, type JWK } from 'jose'
import { scopes } from '../../src/contract/scopes.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { type Issuer, openIssuer } from '../../src/tokens/issuer.ts'
import { type Clock, stopClock } from '../support/clock.ts'
import { readEvents } from '../support/event-stream.ts'
import {
  audience,
  type IssuerKey,
  newKey,
  nowSeconds,
  startIssuer,
  type TestIssuer,
  toClaims,
} from '../support/issuer.ts'
import { lowerLimit } from '../support/limits.ts'
import { releaseAfterTest } from '../support/release.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { startUpload, toLines, toStored } from '../support/upload.ts'
import { type Answer, call, openSocket, toBytes } from '../support/wire.ts'

const memory = 'sqlite::memory:'

/** Asks for a plant that is not there: 40401 with a valid token. */
async function ask(service: TestService, token: string): Promise<Answer & { error: number }> {
  const headers = { Authorization: `Bearer ${token}` }
  const answer = await call(service.url, { path: '/plants/404', headers })
  return { ...answer, error: JSON.parse(answer.body).error }
}

async function numberFor(service: TestService, token: string): Promise<number> {
  return (await ask(service, token)).error
}

/** Starts a service that trusts an issuer, and has its keys. */
async function startTrusting(issuer: TestIssuer, env = {}): Promise<TestService> {
  const service = await startService(memory, { env: { ...issuer.env, ...env } })
  const unknown = await issuer.sign(await newKey('ES256', 'none'))
  await ask(service, unknown)
  return service
}

function encode(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString(
    'base64url',
  )
}

/** Signs any text as claims, below any text as a header. */
function signText(header: unknown, claims: string, key: KeyObject, hash = 'sha256'): string {
  const text = `${encode(header)}.${encode(claims)}`
  return `${text}.${createSign(hash).update(text).sign(key, 'base64url')}`
}

/** Opens the verifier of an issuer by itself. It is closed with the test. */
async function openVerifier({ url }: TestIssuer): Promise<Issuer> {
  const listeners = { onAway() {}, onBack() {} }
  const verifier = await openIssuer({ url, audience, timeoutMs: 60_000, ...listeners })
  releaseAfterTest(verifier.close)
  return verifier
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

describe('JSON Web Tokens', () => {
  let issuer: TestIssuer
  let service: TestService
  let keys: Record<string, IssuerKey>
  let rsa: IssuerKey
  const node = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const plain = { alg: 'RS256', kid: 'node' }
  const toText = (claims: object) => JSON.stringify({ ...toClaims(issuer.url), ...claims })

  before(async () => {
    const names = ['RS256', 'PS256', 'ES256', 'EdDSA']
    keys = Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await newKey(name)])),
    )
    rsa = keys.RS256 as IssuerKey
    issuer = await startIssuer(Object.values(keys))
    issuer.keys.push({ ...(node.publicKey.export({ format: 'jwk' }) as JWK), kid: 'node' })
    service = await startTrusting(issuer)
  })

  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
    it(`are taken when they are signed with ${alg}`, async () => {
      assert.equal(await numberFor(service, await issuer.sign(keys[alg] as IssuerKey)), 40401)
    })
  }

  describe('are judged by their claims', () => {
    const now = nowSeconds()
    const cases: [name: string, claims: object, error: number][] = [
      ['two audiences, one of them ours', { aud: ['other', audience] }, 40401],
      ['no audience', { aud: undefined }, 40101],
      ['an audience that only begins like ours', { aud: `${audience}/` }, 40101],
      ['no issuer', { iss: undefined }, 40101],
      ['another issuer', { iss: 'https://issuer.test' }, 40101],
      ['no expiry', { exp: undefined }, 40101],
      ['an expiry that is text', { exp: String(now + 600) }, 40101],
      ['an expiry within the leeway', { exp: now - 5 }, 40401],
      ['an expiry beyond the leeway', { exp: now - 31 }, 40102],
      ['a beginning within the leeway', { nbf: now + 20 }, 40401],
      ['a beginning beyond the leeway', { nbf: now + 60 }, 40101],
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

    const texts: [name: string, change: (claims: string) => string, error: number][] = [
      ['none twice', (claims) => claims, 40401],
      ['one twice', (claims) => claims.replace('{', '{"aud":"other",'), 40101],
      [
        'an expiry beyond all numbers',
        (claims) => claims.replace(/"exp":\d+/, '"exp":1e999'),
        40101,
      ],
    ]
    for (const [name, change, error] of texts) {
      it(name, async () => {
        const token = signText(plain, change(toText({})), node.privateKey)
        assert.equal(await numberFor(service, token), error)
      })
    }
  })

  describe('are refused without a request to anybody', () => {
    const attacks: [name: string, make: () => Promise<string> | string][] = [
      ['unsigned', () => `${encode({ alg: 'none' })}.${encode(toText({}))}.`],
      [
        'signed with the public key as the secret of an HMAC',
        async () => {
          const pem = await exportSPKI((await importJWK(rsa.jwk)) as CryptoKey)
          const text = `${encode({ alg: 'HS256', kid: rsa.kid })}.${encode(toText({}))}`
          return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
        },
      ],
      [
        'signed with an algorithm that is not in the list',
        () => signText({ ...plain, alg: 'RS512' }, toText({}), node.privateKey, 'sha512'),
      ],
      ['signed by another key of the same name', async () => issuer.sign(await newKey('RS256'))],
      [
        'signed by a key that they bring themselves',
        async () => {
          const own = await newKey('ES256', 'own')
          return issuer.sign(own, {}, { jwk: own.jwk })
        },
      ],
      [
        'of a header with a name twice',
        () => signText('{"alg":"none","alg":"RS256","kid":"node"}', toText({}), node.privateKey),
      ],
      ['of a header that is no JSON', () => signText('{', toText({}), node.privateKey)],
      ['of two parts', () => 'a.b'],
      ['of four parts', () => 'a.b.c.d'],
      ['of empty parts', () => '..'],
    ]
    for (const [name, make] of attacks) {
      it(name, async () => {
        const before = issuer.asked.length
        const { error, headers } = await ask(service, await make())
        assert.equal(error, 40101)
        assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"/)
        assert.equal(issuer.asked.length, before)
      })
    }
  })

  it('have one spelling', async () => {
    const token = await issuer.sign(rsa)
    assert.equal(await numberFor(service, token), 40401)
    const [header = '', claims = '', signature = ''] = token.split('.')
    // 256 bytes leave 4 bits of the last character unused.
    assert.match(signature, /[AQgw]$/)
    const strayBits = signature.replace(
      /.$/,
      (last) => ({ A: 'B', Q: 'R', g: 'h', w: 'x' })[last] ?? '',
    )
    const cut = signature.length / 2
    for (const spelling of [
      `${signature.slice(0, cut)} ${signature.slice(cut)}`,
      `${signature.slice(0, cut)}\t${signature.slice(cut)}`,
      `${signature}==`,
      `${signature}=`,
      strayBits,
      signature.replaceAll('-', '+').replaceAll('_', '/').padEnd(344, '='),
    ]) {
      assert.equal(await numberFor(service, `${header}.${claims}.${spelling}`), 40101, spelling)
    }
    // An issuer may spell what it signs in another way, but then two readers may disagree.
    const loose = `${encode(plain)}=.${claims}`
    const signed = createSign('sha256').update(loose).sign(node.privateKey, 'base64url')
    assert.equal(await numberFor(service, `${loose}.${signed}`), 40101)
  })

  it('work beside the tokens of the store and of the operator', async () => {
    assert.equal(await numberFor(service, operatorToken), 40401)
    assert.equal(await numberFor(service, 'plst_0'), 40101)
    const dotted = await startTrusting(issuer, { PLANT_STORE_TOKEN: 'an.operator.token-of-parts' })
    assert.equal(await numberFor(dotted, 'an.operator.token-of-parts'), 40401)
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
    assert.deepEqual(
      made.map(({ status }) => status),
      [200, 200, 429, 200],
    )
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

  it('end their streams when they expire', async () => {
    const exp = nowSeconds() - 28
    const token = await issuer.sign(rsa, { exp })
    const stream = await readEvents(service.url, '', { Authorization: `Bearer ${token}` })
    assert.equal(stream.response.statusCode, 200)
    await stream.ended
    assert.ok(Date.now() >= (exp + 30) * 1_000)
    assert.equal(await numberFor(service, token), 40102)
  })

  it('end exports, imports and creates under way when they expire', async () => {
    const own = await startTrusting(issuer)
    const name = 'x'.repeat(500_000)
    for (let id = 0n; id < 60n; id++) await own.store.createPlant({ id, name })
    const token = await issuer.sign(rsa, { exp: nowSeconds() - 25 })
    const headers = { Authorization: `Bearer ${token}` }
    const exported = await fetch(`${own.url}/plants.ndjson`, {
      headers: { ...headers, 'Accept-Encoding': 'identity' },
    })
    assert.equal(exported.status, 200)
    const upload = startUpload(own.url, 'ndjson', { headers })
    await upload.send(toLines(1_000, 1_500))
    const create = openSocket(own.url)
    const created = text(create)
    const json = { 'Content-Type': 'application/json', Connection: 'close' }
    const body = '{"id":-1,"name":"late"}'
    const request = { method: 'POST', path: '/plants', headers: { ...headers, ...json }, body }
    create.write(toBytes(request).subarray(0, -5))
    const { status, error, message } = await upload.answer
    assert.deepEqual([status, error], [401, 40102])
    assert.equal(await numberFor(own, token), 40102)
    await assert.rejects(exported.text())
    create.write(body.slice(-5))
    assert.match(await created, /^HTTP\/1\.1 401[\s\S]*40102/)
    const query = { after: 999n, tag: undefined, limit: 9_999 }
    const { plants } = await own.store.listPlants(query)
    assert.equal(toStored(message), plants.length, message)
    assert.equal(await own.store.getPlant(-1n), undefined)
  })

  it('are verified once, though they are used often', async (t) => {
    const verified = t.mock.method(crypto.subtle, 'verify')
    const token = await issuer.sign(rsa, { jti: 'often' })
    for (let count = 0; count < 20; count++) await numberFor(service, token)
    assert.equal(verified.mock.callCount(), 1)
  })

  it('are remembered up to a number, the last ones longest', async (t) => {
    lowerLimit(t, 'verifiedTokens', 3)
    const verifier = await openVerifier(issuer)
    const names = ['0', '1', '2', '3', '4']
    const tokens = await Promise.all(names.map((jti) => issuer.sign(rsa, { jti })))
    // The first waits for the keys, and is not remembered.
    for (const token of [tokens[0] as string, ...tokens]) await verifier.verify(token)
    assert.deepEqual(tokens.filter(verifier.find), tokens.slice(-3))
  })
})

describe('a token without the name of its key', () => {
  it('is tried with every key of its type, and with new ones', async (t) => {
    const [first, second, third] = await Promise.all([1, 2, 3].map((n) => newKey('RS256', `${n}`)))
    assert.ok(first && second && third)
    const issuer = await startIssuer([first])
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey
    issuer.keys.unshift(small.export({ format: 'jwk' }) as JWK, (await newKey('ES256')).jwk)
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
    issuer.answer = () => true
    const timeouts = { issuerMs: 3_000 }
    const service = await startService(memory, { env: issuer.env, timeouts })
    const wanted = { name: 'other', scopes, lifetimeMs: undefined }
    const { token } = await issueToken(service.store, wanted)
    const tokens = Array.from({ length: 100 }, (_, jti) => issuer.sign(key, { jti: `${jti}` }))
    let refused = 0
    const waiting = (await Promise.all(tokens)).map(async (one) => {
      assert.equal(await numberFor(service, one), 50302)
      refused++
    })
    assert.equal(await numberFor(service, token), 40401)
    assert.equal(refused, 0)
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

  it('leave no grant of a token that was being verified while they were withdrawn', async (t) => {
    const [old, current] = [await newKey('ES256', 'old'), await newKey('ES256', 'current')]
    const issuer = await startIssuer([old])
    const verifier = await openVerifier(issuer)
    const subjects = Array.from({ length: 200 }, (_, index) => `user ${index}`)
    const tokens = await Promise.all(subjects.map((sub) => issuer.sign(old, { sub })))
    // The first waits for the keys, and is not remembered.
    for (const token of [tokens[0] as string, ...tokens]) await verifier.verify(token)
    assert.ok(tokens.every(verifier.find))
    pass(stopClock(t))
    issuer.keys = [current.jwk]
    let isRenewed = false
    const renewing = verifier.verify(await issuer.sign(current)).finally(() => {
      isRenewed = true
    })
    // Some are under way whenever the keys change.
    while (!isRenewed) {
      await Promise.allSettled(tokens.map((token) => verifier.verify(token)))
      await nextTurn()
    }
    await renewing
    assert.deepEqual(tokens.filter(verifier.find), [])
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
    ['never ends its answer', (_, response) => response.write('{') || true, /timeout/],
    [
      'redirects',
      ({ url }, response) =>
        response.writeHead(302, { Location: `${url}?again` }).end() !== undefined,
      /answers 302/,
    ],
    ['sends 1 MB of keys', sendKeys(' '.repeat(1_000_000)), /more than 262144 characters/],
    ['sends no JSON', sendKeys('<html>'), /JSON/],
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
