import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { newSecret, rotationMs, sign } from '../../src/webhooks/receiver.ts'

const body = '{"id":9007199254740993,"name":"Grüne Bergpalme 🌴","tag":""}'
const now = Date.now()
const signed = { id: 'k3v9-1-0', timestamp: Math.floor(now / 1000), body }

function toHeaders(signature: string, changes: Record<string, string> = {}) {
  return {
    'webhook-id': signed.id,
    'webhook-timestamp': String(signed.timestamp),
    'webhook-signature': signature,
    ...changes,
  }
}

describe('a signature', () => {
  const secrets = { current: newSecret(), previous: undefined, previousUntil: undefined }

  it('is accepted by the library of Standard Webhooks', () => {
    const payload = new Webhook(secrets.current).verify(
      body,
      toHeaders(sign(secrets, signed, now)),
    ) as { name: string }
    assert.equal(payload.name, 'Grüne Bergpalme 🌴')
  })

  it('has the value that the library computes', () => {
    const expected = new Webhook(secrets.current).sign(signed.id, new Date(now), body)
    assert.equal(sign(secrets, signed, now), expected)
  })

  const changes: [what: string, body: string, headers: Record<string, string>][] = [
    ['another body', body.replace('993', '992'), {}],
    ['another id', body, { 'webhook-id': 'k3v9-1-1' }],
    ['another time', body, { 'webhook-timestamp': String(signed.timestamp + 1) }],
  ]
  for (const [what, changedBody, changed] of changes) {
    it(`does not fit ${what}`, () => {
      const headers = toHeaders(sign(secrets, signed, now), changed)
      assert.throws(() => new Webhook(secrets.current).verify(changedBody, headers))
    })
  }

  it('fits the new and the previous secret until the rotation ends', () => {
    const rotated = {
      current: newSecret(),
      previous: secrets.current,
      previousUntil: now + rotationMs,
    }
    assert.equal(rotationMs, 24 * 60 * 60 * 1000)
    const during = sign(rotated, signed, now + rotationMs - 1)
    assert.equal(during.split(' ').length, 2)
    new Webhook(rotated.current).verify(body, toHeaders(during))
    new Webhook(rotated.previous).verify(body, toHeaders(during))
    const after = sign(rotated, signed, now + rotationMs)
    assert.equal(after.split(' ').length, 1)
    new Webhook(rotated.current).verify(body, toHeaders(after))
    assert.throws(() => new Webhook(rotated.previous).verify(body, toHeaders(after)))
  })
})

describe('a secret', () => {
  it('is whsec_ and 256 random bits in base64', () => {
    const [one, other] = [newSecret(), newSecret()]
    assert.match(one, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.notEqual(one, other)
  })
})
