import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { buildTerminal, startProgress, toCount } from '../../src/cli/terminal.ts'
import { collect } from '../support/command.ts'

const atOnce = { barMs: 0, lineMs: 0 }
const shortNote = 'line 7: Invalid JSON.'
const longNote = `line 8: ${'The member "id" must be an integer. '.repeat(4).trim()}`

type Errors = ReturnType<typeof newErrors>

/** Standard error, with what was written to it; a terminal where it has columns. */
function newErrors(columns?: number) {
  const { stream, chunks, text } = collect()
  const members = columns === undefined ? {} : { isTTY: true, columns }
  return Object.assign(stream, members, { chunks, text })
}

function start(errors: Errors, flags: { quiet?: boolean } = {}, intervals = atOnce) {
  const terminal = buildTerminal({
    version: '1.0.0',
    command: 'npx plant-store',
    input: Object.assign(new PassThrough(), { fd: 0 }),
    output: new PassThrough(),
    errors,
  })
  const report = startProgress('import', 'lines', { flags, terminal }, intervals)
  return { report, tell: terminal.tell, stop: () => terminal.showBar('') }
}

/** Reports and notes in turns, and answers what was written. */
function show(errors: Errors, flags = {}, intervals = atOnce): string {
  const progress = start(errors, flags, intervals)
  progress.report(0, { done: 0, total: 300 })
  progress.report(100, { done: 100, total: 300 })
  progress.tell(shortNote)
  progress.report(1_200, { done: 299, total: 300 })
  progress.stop()
  return errors.text()
}

/** Erases the line that the terminal shows last, if it does not fill it. */
const wipe = '\r\u001b[K'

describe('the progress', () => {
  it('is a bar with count, rate, share and time left on a terminal', () => {
    const shown = show(newErrors(120))
    assert.match(shown, /import \[#+\.+\] 1,200 lines, [\d,]+\/s, 99 %, \d+ s left/)
  })

  for (const columns of [120, 80, 50, 20]) {
    it(`never cuts or overwrites a note on a terminal of ${columns} columns`, () => {
      const errors = newErrors(columns)
      const progress = start(errors)
      for (const [index, note] of [shortNote, longNote].entries()) {
        progress.report(1_000_000 * index, { done: index, total: 2 })
        const bar = String(errors.chunks.at(-1)).replace(wipe, '')
        assert.match(bar, /^import /)
        assert.ok(bar.length < columns)
        progress.tell(note)
        assert.deepEqual(errors.chunks.splice(0).map(String), [
          wipe + bar,
          `${wipe}${note}\n${bar}`,
        ])
      }
      progress.stop()
      assert.equal(errors.text(), wipe)
    })
  }

  it('has no bar while the whole is unknown', () => {
    const errors = newErrors(80)
    const progress = start(errors)
    progress.report(5, undefined)
    assert.match(errors.text(), /import 5 lines, [\d,]+\/s$/)
  })

  it('is a line now and then where there is no terminal', () => {
    assert.match(
      show(newErrors()),
      /^import: 0 lines, 0\/s\nimport: 100 lines, [\d,]+\/s, 33 %, \d+ s left\nline 7: .*\nimport: 1,200 lines/,
    )
    const rarely = { barMs: 60_000, lineMs: 60_000 }
    assert.equal(show(newErrors(), {}, rarely), `${shortNote}\n`)
  })

  it('counts things in the singular and the plural, and units as they are', () => {
    const counts = [toCount(1, 'plants'), toCount(1_200, 'plants'), toCount(1, 'MiB')]
    assert.deepEqual(counts, ['1 plant', '1,200 plants', '1 MiB'])
  })

  it('is only the notes with --quiet', () => {
    for (const errors of [newErrors(80), newErrors()]) {
      assert.equal(show(errors, { quiet: true }), `${shortNote}\n`)
    }
  })
})
