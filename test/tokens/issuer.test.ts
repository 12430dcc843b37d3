import assert from 'node:assert/strict'
import { createHmac, createSign, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import { CompactEncrypt, CompactSign, type CryptoKey, exportSPKI, importJWK, type JWK } from 'jose'
import { type Issuer, openIssuer } from '../../src/tokens/issuer.ts'
import { stopClock } from '../support/clock.ts'
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
import { releaseAfterTest } from '../support/release.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { startUpload, toLines, toStored } from '../support/upload.ts'
import { waitUntil } from '../support/wait.ts'
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
function openVerifier({ url }: TestIssuer): Issuer {
  const listeners = { onAway() {}, onBack() {} }
  const verifier = openIssuer({ url, audience, timeoutMs: 60_000, ...listeners })
  releaseAfterTest(verifier.close)
  return verifier
}

describe('JSON Web Tokens', () => {
  let issuer: TestIssuer
  let service: TestService
  let rsa: IssuerKey
  let pss: IssuerKey
  let ec: IssuerKey
  let ed: IssuerKey
  const node = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const plain = { alg: 'RS256', kid: 'node' }
  const toText = (claims: object) => JSON.stringify({ ...toClaims(issuer.url), ...claims })

  before(async () => {
    rsa = await newKey('RS256')
    pss = await newKey('PS256')
    ec = await newKey('ES256')
    ed = await newKey('EdDSA')
    issuer = await startIssuer([rsa, pss, ec, ed])
    issuer.keys.push(
      { ...(node.publicKey.export({ format: 'jwk' }) as JWK), kid: 'node' },
      { ...(small.publicKey.export({ format: 'jwk' }) as JWK), kid: 'small' },
    )
    service = await startTrusting(issuer)
  })

  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
    it(`are taken when they are signed with ${alg}`, async () => {
      const key = { RS256: rsa, PS256: pss, ES256: ec, EdDSA: ed }[alg] as IssuerKey
      assert.equal(await numberFor(service, await issuer.sign(key)), 40401)
    })
  }

  describe('are judged by their claims', () => {
    const now = nowSeconds()
    const cases: [name: string, claims: object, error: number][] = [
      ['two audiences, one of them ours', { aud: ['other', audience] }, 40401],
      ['two audiences, none of them ours', { aud: ['one', 'two'] }, 40101],
      ['no audience', { aud: undefined }, 40101],
      ['another audience', { aud: 'other' }, 40101],
      ['an audience that only begins like ours', { aud: `${audience}/` }, 40101],
      ['no issuer', { iss: undefined }, 40101],
      ['another issuer', { iss: 'https://issuer.test' }, 40101],
      ['no expiry', { exp: undefined }, 40101],
      ['an expiry that is text', { exp: String(now + 600) }, 40101],
      ['an expiry that is null', { exp: null }, 40101],
      ['an expiry with a fraction', { exp: now + 600.5 }, 40401],
      ['an expiry within the leeway', { exp: now - 5 }, 40401],
      ['an expiry beyond the leeway', { exp: now - 31 }, 40102],
      ['an expiry before 1970', { exp: -1 }, 40102],
      ['a beginning within the leeway', { nbf: now + 20 }, 40401],
      ['a beginning beyond the leeway', { nbf: now + 60 }, 40101],
      ['a beginning that is text', { nbf: String(now) }, 40101],
      ['a subject that is a number', { sub: 7 }, 40101],
      ['no subject', { sub: undefined }, 40401],
      ['scopes in scp, as text', { scope: undefined, scp: 'openid plants:read' }, 40401],
      ['scopes in scp, as an array', { scope: undefined, scp: ['plants:read'] }, 40401],
      ['only other scopes', { scope: 'openid profile' }, 40300],
      ['only a scope for writing', { scope: 'plants:write' }, 40300],
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
      const text = toText({ exp: 0 }).replace('"exp":0', '"exp":1e999')
      assert.equal(await numberFor(service, signText(plain, text, node.privateKey)), 40101)
    })

    it('a duplicate claim', async () => {
      assert.equal(await numberFor(service, signText(plain, toText({}), node.privateKey)), 40401)
      const twice = toText({}).replace('{', '{"aud":"other",')
      assert.equal(await numberFor(service, signText(plain, twice, node.privateKey)), 40101)
    })

    it('a duplicate name in the header', async () => {
      const header = JSON.stringify(plain).replace('{', '{"alg":"none",')
      assert.equal(await numberFor(service, signText(header, toText({}), node.privateKey)), 40101)
    })

    it('nearly as many claims as fit into the headers, and more', async () => {
      const long = await issuer.sign(rsa, { groups: 'x'.repeat(11_000) })
      assert.equal(await numberFor(service, long), 40401)
      const longer = await issuer.sign(rsa, { groups: 'x'.repeat(16_000) })
      assert.equal(await numberFor(service, longer), 43100)
    })
  })

  describe('are refused without a request to anybody', () => {
    const attacks: [name: string, make: () => Promise<string> | string][] = [
      ['unsigned', () => `${encode({ alg: 'none' })}.${encode(toText({}))}.`],
      [
        'signed with alg none and a signature',
        async () =>
          `${encode({ alg: 'none', kid: rsa.kid })}.${(await issuer.sign(rsa)).slice(40)}`,
      ],
      [
        'signed with the public key as the secret of an HMAC',
        async () => {
          const pem = await exportSPKI((await importJWK(rsa.jwk)) as CryptoKey)
          const text = `${encode({ alg: 'HS256', kid: rsa.kid })}.${encode(toText({}))}`
          return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
        },
      ],
      [
        'signed with another algorithm of the same key',
        () => signText({ ...plain, alg: 'RS512' }, toText({}), node.privateKey, 'sha512'),
      ],
      ['signed by another key of the same name', async () => issuer.sign(await newKey('RS256'))],
      [
        'changed after they were signed',
        async () => {
          const [header, , signature] = (await issuer.sign(rsa)).split('.')
          return `${header}.${encode(toText({ sub: 'mallory' }))}.${signature}`
        },
      ],
      [
        'signed by a key of fewer than 2,048 bits',
        () => signText({ alg: 'RS256', kid: 'small' }, toText({}), small.privateKey),
      ],
      [
        'of a critical extension',
        async () =>
          new CompactSign(Buffer.from(toText({})))
            .setProtectedHeader({ alg: 'RS256', kid: rsa.kid, crit: ['exp2'], exp2: 1 })
            .sign(rsa.privateKey, { crit: { exp2: true } }),
      ],
      [
        'of claims that are not encoded',
        () => {
          const header = encode({ ...plain, b64: false, crit: ['b64'] })
          const text = `${header}.{}`
          return `${text}.${createSign('sha256').update(text).sign(node.privateKey, 'base64url')}`
        },
      ],
      [
        'nested',
        async () =>
          new CompactSign(Buffer.from(await issuer.sign(rsa)))
            .setProtectedHeader({ alg: 'RS256', kid: rsa.kid, cty: 'JWT' })
            .sign(rsa.privateKey),
      ],
      [
        'compressed',
        async () =>
          new CompactSign(deflateRawSync(toText({})))
            .setProtectedHeader({ alg: 'RS256', kid: rsa.kid, zip: 'DEF' })
            .sign(rsa.privateKey),
      ],
      [
        'encrypted',
        async () =>
          new CompactEncrypt(Buffer.from(toText({})))
            .setProtectedHeader({ alg: 'dir', enc: 'A128GCM' })
            .encrypt(Buffer.alloc(16)),
      ],
      ['of claims that are an array', async () => signText(plain, '[]', node.privateKey)],
      ['of claims that are no JSON', async () => signText(plain, '{', node.privateKey)],
      ['of a header that is no JSON', async () => signText('{', toText({}), node.privateKey)],
      [
        'of a header that is deep',
        async () => signText('['.repeat(9_000), toText({}), node.privateKey),
      ],
      ['of two parts', () => 'a.b'],
      ['of four parts', () => 'a.b.c.d'],
      ['of empty parts', () => '..'],
      ['of no base64', () => '$.$.$'],
    ]
    for (const [name, make] of attacks) {
      it(name, async () => {
        const before = issuer.asked.length
        const token = await make()
        const { error, headers } = await ask(service, token)
        assert.equal(error, 40101)
        assert.match(headers.get('www-authenticate') ?? '', /error="invalid_token"/)
        assert.equal(issuer.asked.length, before)
      })
    }

    const own: [name: string, header: (jwk: JWK, url: string) => object][] = [
      ['jwk', (jwk) => ({ jwk })],
      ['jku', (_, url) => ({ jku: `${url}/keys` })],
      ['x5u', (_, url) => ({ x5u: `${url}/keys` })],
    ]
    for (const [name, header] of own) {
      it(`signed by a key that they bring themselves in ${name}`, async () => {
        const key = await newKey('ES256', 'own')
        const other = await startIssuer([key])
        for (const kid of [undefined, 'own', ec.kid]) {
          const token = await issuer.sign(key, {}, { kid, ...header(key.jwk, other.url) })
          assert.equal(await numberFor(service, token), 40101)
        }
        assert.deepEqual(other.asked, [])
      })
    }
  })

  it('name their key by text alone, whatever is in it', async (t) => {
    stopClock(t)
    const before = issuer.asked.length
    const names = ['../../keys', '/etc/passwd', '', 'x'.repeat(11_000), '__proto__', 7, null, {}]
    for (const kid of names) {
      assert.equal(await numberFor(service, await issuer.sign(rsa, {}, { kid })), 40101)
    }
    assert.equal(issuer.asked.length, before)
  })

  it('are refused when their algorithm does not fit the type of the key', async () => {
    const text = `${encode({ alg: 'EdDSA', kid: rsa.kid })}.${encode(toText({}))}`
    const key = generateKeyPairSync('ed25519').privateKey
    const token = `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`
    assert.equal(await numberFor(service, token), 40101)
  })

  it('work beside the tokens of the store and of the operator', async () => {
    assert.equal(await numberFor(service, operatorToken), 40401)
    assert.equal(await numberFor(service, await issuer.sign(ec)), 40401)
    assert.equal(await numberFor(service, 'plst_0'), 40101)
    const dotted = await startTrusting(issuer, { PLANT_STORE_TOKEN: 'an.operator.token-of-parts' })
    assert.equal(await numberFor(dotted, 'an.operator.token-of-parts'), 40401)
    assert.equal(await numberFor(dotted, 'an.operator.token-of-parts'), 40401)
  })

  it('are unknown where no issuer is set', async () => {
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
    const token = await issuer.sign(ed, { jti: 'often' })
    for (let count = 0; count < 20; count++) await numberFor(service, token)
    assert.equal(verified.mock.callCount(), 1)
  })

  it('are remembered in a bounded memory, the last ones longest', async () => {
    const verifier = openVerifier(issuer)
    const groups = 'x'.repeat(1_000_000)
    const numbers = Array.from({ length: 20 }, (_, number) => String(number))
    const tokens = await Promise.all(numbers.map((jti) => issuer.sign(ed, { groups, jti })))
    // The first waits for the keys, and is not remembered.
    for (const token of [tokens[0] as string, ...tokens]) await verifier.verify(token)
    // Of these, 12 fill the 16 MiB.
    assert.deepEqual(tokens.filter(verifier.find), tokens.slice(-12))
    const [forgotten = ''] = tokens
    await verifier.verify(forgotten)
    assert.notEqual(verifier.find(forgotten), undefined)
  })

  it('take their memory once, however often they are verified at the same time', async () => {
    const verifier = openVerifier(issuer)
    // Of these, 12 fill the 16 MiB.
    const token = await issuer.sign(ed, { groups: 'x'.repeat(1_000_000) })
    for (let round = 0; round < 2; round++) {
      await Promise.all(Array.from({ length: 15 }, () => verifier.verify(token)))
    }
    assert.notEqual(verifier.find(token), undefined)
  })
})

describe('the keys of an issuer', () => {
  it('are asked for again when one is unknown, once a minute', async (t) => {
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
    clock.advance(60_000)
    assert.equal(await numberFor(service, token), 40401)
    await flood()
    assert.deepEqual(issuer.asked.slice(before), ['/keys'])
    assert.equal(await numberFor(service, await issuer.sign(first)), 40401)
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
    clock.advance(60_000)
    await ask(service, await issuer.sign(current, {}, { kid: 'unknown' }))
    assert.equal(await numberFor(service, token), 40101)
    await stream.ended
    assert.equal(await numberFor(service, await issuer.sign(current)), 40401)
  })

  it('leave no grant of a token that was being verified while they were withdrawn', async (t) => {
    const [old, current] = [await newKey('ES256', 'old'), await newKey('ES256', 'current')]
    const issuer = await startIssuer([old])
    const verifier = openVerifier(issuer)
    const subjects = Array.from({ length: 200 }, (_, index) => `user ${index}`)
    const tokens = await Promise.all(subjects.map((sub) => issuer.sign(old, { sub })))
    // The first waits for the keys, and is not remembered.
    for (const token of [tokens[0] as string, ...tokens]) await verifier.verify(token)
    assert.ok(tokens.every(verifier.find))
    stopClock(t).advance(60_000)
    issuer.keys = [current.jwk]
    let isRenewed = false
    const renewing = verifier.verify(await issuer.sign(current)).finally(() => {
      isRenewed = true
    })
    // Some are under way whenever the keys change.
    while (!isRenewed) {
      await Promise.allSettled(tokens.map(verifier.verify))
      await nextTurn()
    }
    await renewing
    assert.deepEqual(tokens.filter(verifier.find), [])
  })

  it('stay while the issuer is away; a token of an unknown one is answered 503', async (t) => {
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    issuer.answer = (_, response) => {
      response.writeHead(500).end()
      return true
    }
    clock.advance(60_000)
    const unknown = await issuer.sign(key, {}, { kid: 'unknown' })
    const { status, error, headers } = await ask(service, unknown)
    assert.deepEqual([status, error, headers.get('retry-after')], [503, 50302, '60'])
    assert.equal(await numberFor(service, await issuer.sign(key)), 40401)
    assert.equal(await numberFor(service, operatorToken), 40401)
    assert.equal(await numberFor(service, `${encode({ alg: 'none' })}.${encode('{}')}.`), 40101)
    issuer.answer = () => false
    clock.advance(60_000)
    assert.equal(await numberFor(service, unknown), 40101)
    const lines = service.log.filter((line) => line.includes('issuer of JSON Web Tokens'))
    assert.equal(lines.length, 2)
  })

  it('are withdrawn within about a minute after an outage of the issuer', async (t) => {
    const [old, current] = [await newKey('ES256', 'old'), await newKey('ES256', 'current')]
    const issuer = await startIssuer([old, current])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    const token = await issuer.sign(old)
    issuer.answer = (_, response) => {
      response.writeHead(500).end()
      return true
    }
    clock.advance(60_000)
    assert.equal(await numberFor(service, await issuer.sign(old, {}, { kid: 'x' })), 50302)
    assert.equal(await numberFor(service, token), 40401)
    issuer.keys.shift()
    issuer.answer = () => false
    clock.advance(60_000)
    // No token with an unknown key asks for it.
    const isGone = async () => {
      clock.advance(10)
      return (await numberFor(service, token)) === 40101
    }
    await waitUntil(isGone, 'the key is gone')
    assert.equal(await numberFor(service, await issuer.sign(current)), 40401)
  })

  it('are found at another address once they are gone from the first', async (t) => {
    const [old, current] = [await newKey('ES256', 'old'), await newKey('ES256', 'current')]
    const issuer = await startIssuer([old])
    const service = await startTrusting(issuer)
    const clock = stopClock(t)
    issuer.keys = [current.jwk]
    issuer.answer = ({ url }, response) => {
      if (url === '/moved') return false
      const { url: name } = issuer
      if (url === '/keys') response.writeHead(404).end()
      else response.end(JSON.stringify({ issuer: name, jwks_uri: `${name}/moved` }))
      return true
    }
    const token = await issuer.sign(current)
    for (const number of [50302, 40401]) {
      clock.advance(60_000)
      assert.equal(await numberFor(service, token), number)
    }
  })

  const faults: [name: string, answer: TestIssuer['answer'], cause: RegExp][] = [
    ['hangs', () => true, /aborted/],
    [
      'never ends its answer',
      (_, response) => {
        response.write('{')
        return true
      },
      /aborted/,
    ],
    [
      'redirects',
      (request, response) => {
        response.writeHead(302, { Location: `${request.url}?again` }).end()
        return true
      },
      /answers 302/,
    ],
    [
      'sends 100 MB',
      (_, response) => {
        const chunk = Buffer.alloc(1_000_000, ' ')
        const send = (left: number) =>
          left === 0 ? response.end() : response.write(chunk, () => send(left - 1))
        send(100)
        return true
      },
      /more than 65536 bytes/,
    ],
    [
      'sends no JSON',
      (_, response) => {
        response.end('<html>')
        return true
      },
      /JSON/,
    ],
    [
      'calls itself by another name',
      (_, response) => {
        response.end('{"issuer":"https://other.test","jwks_uri":"https://other.test/keys"}')
        return true
      },
      /another issuer/,
    ],
    [
      'has its keys at an address that is not encrypted',
      ({ headers }, response) => {
        const issuer = `http://${headers.host}`
        response.end(JSON.stringify({ issuer, jwks_uri: 'http://other.test/keys' }))
        return true
      },
      /no jwks_uri/,
    ],
    [
      'sends keys that are none',
      ({ url }, response) => {
        if (url !== '/keys') return false
        response.end('{"keys":"none"}')
        return true
      },
      /malformed/,
    ],
    [
      'sends 100 MB of keys',
      ({ url }, response) => {
        if (url !== '/keys') return false
        for (let left = 100; left > 0; left--) response.write(Buffer.alloc(1_000_000, ' '))
        response.end()
        return true
      },
      /more than 262144 bytes/,
    ],
  ]
  for (const [name, answer, cause] of faults) {
    it(`are unknown while the issuer ${name}; other tokens work`, async () => {
      const key = await newKey('ES256')
      const issuer = await startIssuer([key])
      issuer.answer = answer
      // Only those that never end are waited for to the last.
      const issuerMs = cause.source === 'aborted' ? 300 : 30_000
      const service = await startService(memory, { env: issuer.env, timeouts: { issuerMs } })
      const waiting = ask(service, await issuer.sign(key))
      assert.equal(await numberFor(service, operatorToken), 40401)
      const { status, error, headers } = await waiting
      assert.deepEqual([status, error, headers.get('retry-after')], [503, 50302, '5'])
      assert.ok(issuer.asked.every((path) => !path.includes('again')))
      const [line = ''] = service.log.filter((one) => one.includes('cannot be asked'))
      assert.match(line, cause)
    })
  }

  it('are waited for by a bounded number of requests at a time', async (t) => {
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    const held: ServerResponse[] = []
    issuer.answer = (_, response) => held.push(response) > 0
    const service = await startService(memory, { env: issuer.env, timeouts: { issuerMs: 60_000 } })
    const token = await issuer.sign(key)
    const asked = Array.from({ length: 1_001 }, () => numberFor(service, token))
    assert.equal(await Promise.race(asked), 50302)
    issuer.answer = () => false
    for (const response of held) response.destroy()
    const numbers = await Promise.all(asked)
    assert.equal(numbers.length, 1_001)
    stopClock(t).advance(60_000)
    assert.equal(await numberFor(service, token), 40401)
  })

  it('are found once an issuer that was away at the start is there', async () => {
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    issuer.answer = (_, response) => {
      response.writeHead(503).end()
      return true
    }
    const service = await startService(memory, { env: issuer.env })
    const token = await issuer.sign(key)
    assert.equal(await numberFor(service, token), 50302)
    issuer.answer = () => false
    await waitUntil(async () => (await numberFor(service, token)) === 40401, 'the keys are known')
  })

  it('are found at an address with a query', async () => {
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    issuer.answer = ({ url }, response) => {
      if (url !== '/.well-known/openid-configuration') return false
      const { url: name } = issuer
      response.end(JSON.stringify({ issuer: name, jwks_uri: `${name}/keys?policy=plants` }))
      return true
    }
    const service = await startService(memory, { env: issuer.env })
    assert.equal(await numberFor(service, await issuer.sign(key)), 40401)
    assert.equal(issuer.asked.at(-1), '/keys?policy=plants')
  })
})
