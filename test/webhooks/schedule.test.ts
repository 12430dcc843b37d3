import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { toKnownRow } from '../../src/webhooks/queue.ts'
import { deliver, findUrlMistake, newSecret, rotationMs } from '../../src/webhooks/receiver.ts'
import {
  defaultRetryDelaysMs,
  judge,
  type Outcome,
  toRetryAfterMs,
  toRetryDelayMs,
} from '../../src/webhooks/schedule.ts'
import { defaultSettings } from '../../src/webhooks/sender.ts'
import type { Post } from '../../src/webhooks/transport.ts'
import { newDelivery, nothingSent } from '../support/receiver-record.ts'

const dayMs = 24 * 60 * 60 * 1000
const now = Date.UTC(2026, 0, 9)
const taken: Outcome = { status: 200, error: undefined, retryAfterMs: 0 }
const failed: Outcome = { status: 500, error: 'answered 500', retryAfterMs: 0 }

describe('the pause before another attempt', () => {
  it('is as docs/webhooks.md says, give or take a fifth, and there is none after the last', () => {
    const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
    const [, pauses = ''] = /sent again after ((?:\d+ \w+, )+\d+ h) \(±20 %\)/.exec(page) ?? []
    const unitMs: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 }
    const documented = pauses.split(', ').map((pause) => {
      const [count, unit = ''] = pause.split(' ')
      return Number(count) * (unitMs[unit] ?? Number.NaN)
    })
    for (const [index, pauseMs] of documented.entries()) {
      const shares = Array.from(
        { length: 500 },
        () => Number(toRetryDelayMs(index + 1, 0, defaultRetryDelaysMs)) / pauseMs,
      )
      const [least, most] = [Math.min(...shares), Math.max(...shares)]
      assert.ok(least >= 0.8 && most <= 1.2 && most - least > 0.2, `${least} to ${most}`)
    }
    assert.equal(toRetryDelayMs(documented.length + 1, 5_000, defaultRetryDelaysMs), undefined)
  })

  it('is never shorter than the receiver asks for', () => {
    assert.equal(toRetryDelayMs(1, 60_000, defaultRetryDelaysMs), 60_000)
    assert.ok(Number(toRetryDelayMs(3, 1_000, defaultRetryDelaysMs)) >= 24_000)
  })
})

describe('Retry-After', () => {
  const values: [value: string | undefined, pauseMs: number][] = [
    [undefined, 0],
    ['0', 0],
    ['120', 120_000],
    ['28800', 28_800_000],
    ['28801', 28_800_000],
    ['9'.repeat(400), 28_800_000],
    [new Date(now + 90_000).toUTCString(), 90_000],
    [new Date(now - 90_000).toUTCString(), 0],
    [new Date(now + 90_000_000).toUTCString(), 28_800_000],
    ['soon', 0],
    ['-5', 0],
    ['', 0],
  ]
  it('is a number of seconds or a date, and asks for 8 hours at most', () => {
    for (const [value, pauseMs] of values) assert.equal(toRetryAfterMs(value, now), pauseMs, value)
  })
})

describe('the next attempt of a delivery in the store', () => {
  it('is made within 10 hours, even after the clock was set back', () => {
    const dueAt = now + 365 * dayMs
    const retry = toKnownRow(newDelivery({ attempts: 1, dueAt }), now)
    assert.ok(retry.readyAt < performance.now() + 10 * 60 * 60 * 1000)
    const first = toKnownRow(newDelivery({ attempts: 0, dueAt }), now)
    assert.ok(first.readyAt <= performance.now())
  })
})

describe('the URL of a receiver', () => {
  const refused: [url: string, mistake: RegExp][] = [
    ['', /whole URL/],
    ['example.com/hook', /whole URL/],
    ['http://exa mple/', /whole URL/],
    ['http://example.com/a\nb', /whole URL/],
    ['ftp://example.com/', /http or https/],
    ['https://user:secret@example.com/', /user or a password/],
    ['https://:secret@example.com/', /user or a password/],
    [`https://example.com/${'x'.repeat(2_029)}`, /at most 2048 bytes/],
  ]
  it('is refused with what is wrong with it', () => {
    for (const [url, mistake] of refused) assert.match(findUrlMistake(url) ?? '', mistake, url)
  })

  const accepted = [
    'http://127.0.0.1:8080/',
    'https://example.com',
    'https://example.com/a/b?c=d#e',
    'http://[::1]:9/x',
    `https://example.com/${'x'.repeat(2_028)}`,
  ]
  it('is accepted otherwise', () => {
    for (const url of accepted) assert.equal(findUrlMistake(url), undefined, url)
  })
})

describe('the verdict on an attempt', () => {
  it('forgets with a success since when the receiver has failed', (test) => {
    test.mock.timers.enable({ apis: ['Date'], now })
    const before = { ...nothingSent, lastFailureAt: now - 1, failingSince: now - 9 * dayMs }
    const { result, times, pause } = judge(taken, 3, before, defaultSettings)
    assert.deepEqual({ result, pause }, { result: 'done', pause: undefined })
    assert.deepEqual(times, { ...before, lastSuccessAt: now, failingSince: undefined })
  })

  it('counts from the first failure after a success', (test) => {
    test.mock.timers.enable({ apis: ['Date'], now })
    const first = judge(
      failed,
      0,
      { ...nothingSent, lastSuccessAt: now - 9 * dayMs },
      defaultSettings,
    )
    assert.deepEqual([first.result, first.pause], ['retry', undefined])
    assert.equal(first.times.failingSince, now)
    test.mock.timers.setTime(now + dayMs)
    const later = judge(failed, 1, first.times, defaultSettings)
    assert.equal(later.times.failingSince, now)
    assert.equal(later.times.lastFailureAt, now + dayMs)
  })

  for (const [days, expected] of [
    [3 * dayMs - 1, undefined],
    [3 * dayMs, 'every attempt has failed for 3 days'],
  ] as const) {
    it(`is ${expected ? 'a' : 'no'} pause after ${days} ms without a success`, (test) => {
      test.mock.timers.enable({ apis: ['Date'], now })
      const times = { ...nothingSent, failingSince: now - days }
      assert.equal(judge(failed, 9, times, defaultSettings).pause, expected)
    })
  }

  it('gives a change up after eleven attempts, and never by 410', () => {
    assert.equal(judge(failed, 9, nothingSent, defaultSettings).result, 'retry')
    assert.equal(judge(failed, 10, nothingSent, defaultSettings).result, 'failed')
    const gone = { ...failed, status: 410 }
    assert.equal(judge(gone, 10, nothingSent, defaultSettings).result, 'refused')
  })
})

describe('a signature', () => {
  it('fits the new and the previous secret until the rotation ends', async (test) => {
    test.mock.timers.enable({ apis: ['Date'], now })
    const body = '{"id":9007199254740993,"name":"Grüne Bergpalme 🌴","tag":""}'
    const message = { id: 'k3v9-1-0', event: 'plant.created', body }
    const rotated = { current: newSecret(), previous: newSecret(), previousUntil: now + rotationMs }
    const findFitting = async (at: number) => {
      test.mock.timers.setTime(at)
      let sent: Readonly<Record<string, string>> = {}
      const post = async ({ headers }: Post) => {
        sent = headers
        return taken
      }
      await deliver({ post, close() {} }, rotated, message, () => true)
      return [rotated.current, rotated.previous].filter((secret) => {
        try {
          return new Webhook(secret).verify(body, sent) !== undefined
        } catch {
          return false
        }
      })
    }
    assert.equal(rotationMs, dayMs)
    assert.deepEqual(await findFitting(now + rotationMs - 1), [rotated.current, rotated.previous])
    assert.deepEqual(await findFitting(now + rotationMs), [rotated.current])
  })

  it('is made with a secret of 256 random bits', () => {
    const [one, other] = [newSecret(), newSecret()]
    assert.match(one, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.notEqual(one, other)
  })
})
