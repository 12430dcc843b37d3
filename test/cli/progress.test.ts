import assert from 'node:assert/strict'
import { PassThrough, Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { startProgress, toCount } from '../../src/cli/progress.ts'
import { buildTerminal } from '../../src/cli/terminal.ts'

const atOnce = { barMs: 0, lineMs: 0 }
const shortNote = 'line 7: Invalid JSON.'
const longNote = `line 8: ${'The member "id" must be an integer. '.repeat(4).trim()}`

type Errors = ReturnType<typeof newErrors>

/** Standard error, with what was written to it; a terminal where it has columns. */
function newErrors(columns?: number) {
  const written: string[] = []
  const stream = new Writable({
    write(text, _, done) {
      written.push(String(text))
      done()
    },
  })
  const members = columns === undefined ? {} : { isTTY: true, columns }
  return Object.assign(stream, members, { written })
}

function start(errors: Errors, flags: { quiet?: boolean } = {}, intervals = atOnce) {
  const terminal = buildTerminal({
    version: '1.0.0',
    command: 'npx plant-store',
    input: Object.assign(new PassThrough(), { fd: 0 }),
    output: new PassThrough(),
    errors,
  })
  return startProgress('import', 'lines', terminal, flags, intervals)
}

/** Reports and notes in turns, and answers what was written. */
function show(errors: Errors, flags = {}, intervals = atOnce): string {
  const progress = start(errors, flags, intervals)
  progress.report(0, { done: 0, total: 300 })
  progress.report(100, { done: 100, total: 300 })
  progress.note(shortNote)
  progress.report(1_200, { done: 299, total: 300 })
  progress.stop()
  return errors.written.join('')
}

/** Stands for the sequence that erases the rest of a line. */
const erase = '\ue000'

/** The lines on the screen of a terminal to which the text was written. */
function toScreen(text: string, columns: number): string[] {
  const lines = ['']
  let column = 0
  for (const token of text.replaceAll('\u001b[K', erase)) {
    const line = lines.at(-1) as string
    if (token === '\r') column = 0
    else if (token === erase) lines[lines.length - 1] = line.slice(0, column)
    else if (token === '\n' || column === columns) {
      lines.push(token === '\n' ? '' : token)
      column = token === '\n' ? 0 : 1
    } else {
      lines[lines.length - 1] = line.slice(0, column) + token + line.slice(column + 1)
      column++
    }
  }
  return lines
}

function wrap(text: string, columns: number): string[] {
  return text.match(new RegExp(`.{1,${columns}}`, 'g')) ?? []
}

describe('the progress', () => {
  it('is a bar with count, rate, share and time left on a terminal', () => {
    const shown = show(newErrors(120))
    assert.match(shown, /import \[#+\.+\] 1,200 lines, [\d,]+\/s, 99 %, \d+ s left/)
  })

  for (const columns of [120, 80, 50, 20]) {
    it(`never cuts or overwrites a note on a terminal of ${columns} columns`, () => {
      const errors = newErrors(columns)
      const progress = start(errors)
      const screen = () => toScreen(errors.written.join(''), columns)
      const expected: string[] = []
      for (const [index, note] of [shortNote, longNote, shortNote, longNote].entries()) {
        progress.report(1_000_000 * index, { done: index, total: 4 })
        progress.note(note)
        expected.push(...wrap(note, columns))
        assert.deepEqual(screen().slice(0, -1), expected)
        assert.match(screen().at(-1) ?? '', /^import /)
        assert.ok((screen().at(-1) ?? '').length < columns)
      }
      progress.stop()
      assert.deepEqual(screen(), [...expected, ''])
    })
  }

  it('has no bar while the whole is unknown', () => {
    const errors = newErrors(80)
    const progress = start(errors)
    progress.report(5, undefined)
    assert.match(errors.written.join(''), /import 5 lines, [\d,]+\/s$/)
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
