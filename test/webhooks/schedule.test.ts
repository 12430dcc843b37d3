import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { toKnownRow } from '../../src/webhooks/queue.ts'
import { findUrlMistake } from '../../src/webhooks/receiver.ts'
import {
  defaultRetryDelaysMs,
  toRetryAfterMs,
  toRetryDelayMs,
} from '../../src/webhooks/schedule.ts'

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
  const now = Date.UTC(2026, 0, 1)
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
  for (const [value, pauseMs] of values) {
    it(`asks for ${pauseMs} ms with ${value?.slice(0, 40)}`, () => {
      assert.equal(toRetryAfterMs(value, now), pauseMs)
    })
  }
})

describe('the next attempt of a delivery in the store', () => {
  const delivery = {
    position: 'p',
    type: 'plant.created',
    at: 0,
    plantId: 1n,
    body: '{}',
    lastStatus: undefined,
    lastError: undefined,
  } as const
  const dayMs = 24 * 60 * 60 * 1000

  it('is made within 10 hours, even after the clock was set back', () => {
    const now = Date.now()
    const retry = toKnownRow({ ...delivery, attempts: 1, dueAt: now + 365 * dayMs }, now)
    assert.ok(retry.readyAt < performance.now() + 10 * 60 * 60 * 1000)
    const first = toKnownRow({ ...delivery, attempts: 0, dueAt: now + 365 * dayMs }, now)
    assert.ok(first.readyAt <= performance.now())
  })
})

describe('the URL of a receiver', () => {
  const refused: [url: string, mistake: RegExp][] = [
    ['', /whole URL/],
    ['example.com/hook', /whole URL/],
    ['/hook', /whole URL/],
    ['http://', /whole URL/],
    ['http://exa mple/', /whole URL/],
    ['http://example.com/a\nb', /whole URL/],
    ['ftp://example.com/', /http or https/],
    ['file:///etc/passwd', /http or https/],
    ['javascript:alert(1)', /http or https/],
    ['https://user:secret@example.com/', /user or a password/],
    ['https://user@example.com/', /user or a password/],
    ['https://:secret@example.com/', /user or a password/],
    [`https://example.com/${'x'.repeat(2_029)}`, /at most 2048 bytes/],
  ]
  for (const [url, mistake] of refused) {
    it(`is refused: ${JSON.stringify(url.slice(0, 50))}`, () => {
      assert.match(findUrlMistake(url) ?? '', mistake)
    })
  }

  const accepted = [
    'http://127.0.0.1:8080/',
    'https://example.com',
    'https://example.com/a/b?c=d#e',
    'http://[::1]:9/x',
    `https://example.com/${'x'.repeat(2_028)}`,
  ]
  for (const url of accepted) {
    it(`is accepted: ${url.slice(0, 50)}`, () => {
      assert.equal(findUrlMistake(url), undefined)
    })
  }
})
