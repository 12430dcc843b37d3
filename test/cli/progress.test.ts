import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { startProgress } from '../../src/cli/progress.ts'
import type { Terminal } from '../../src/cli/terminal.ts'

const atOnce = { barMs: 0, lineMs: 0 }

/** Shows a progress of 3 reports on a terminal, or on none, and answers what was written. */
function show(members: object, flags: { quiet?: boolean }, intervals = atOnce): string {
  let written = ''
  const stream = new Writable({
    write(text, _, done) {
      written += text
      done()
    },
  })
  const errors = Object.assign(stream, members)
  const terminal = { errors } as unknown as Terminal
  const progress = startProgress('import', 'lines', terminal, flags, intervals)
  progress.report(0, { done: 0, total: 300 })
  progress.report(100, { done: 100, total: 300 })
  progress.note('line 7: no JSON')
  progress.report(1_200, { done: 299, total: 300 })
  progress.stop()
  return written
}

describe('the progress', () => {
  it('is a bar with count, rate and time left on a terminal', () => {
    const shown = show({ isTTY: true, columns: 120 }, {})
    assert.match(shown, /import [█░]{10,} 1,200 lines, [\d,]+\/s, 99 %, \d+ s left/)
    assert.ok(shown.includes('\r\u001b[Kline 7: no JSON\n'))
  })

  it('is a line now and then where there is no terminal', () => {
    const shown = show({}, {})
    assert.match(
      shown,
      /^import: 0 lines, 0\/s\nimport: 100 lines, [\d,]+\/s, 33 %, \d+ s left\nline 7: no JSON\nimport: 1,200 lines/,
    )
    assert.equal(show({}, {}, { barMs: 60_000, lineMs: 60_000 }), 'line 7: no JSON\n')
  })

  it('is nothing but what has to be said when quiet was asked for', () => {
    for (const members of [{ isTTY: true }, {}]) {
      assert.equal(show(members, { quiet: true }), 'line 7: no JSON\n')
    }
  })
})
