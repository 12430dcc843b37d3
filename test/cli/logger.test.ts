import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { openLogger } from '../../src/cli/serve.ts'

function newTerminal(colors: 'with colors' | 'without colors') {
  const written: string[] = []
  const stream = new Writable({
    write(text, _, done) {
      written.push(String(text))
      done()
    },
  })
  const getColorDepth = () => (colors === 'with colors' ? 8 : 1)
  return Object.assign(stream, { isTTY: true, getColorDepth, written })
}

describe('the log on a terminal', () => {
  it('shows control characters as escapes, whichever member has them', () => {
    const terminal = newTerminal('without colors')
    const logger = openLogger('info', terminal)
    const details = { code: '\u202e', '\u009b1m': 1 }
    const err = Object.assign(new Error('\u001b[2J\n\u001b[31m\u2028'), details)
    logger.info({ path: '/\u009b31m', err }, 'one \u001b]0;title\u0007 two\nthree')
    const shown = terminal.written.join('')
    assert.match(shown, /one \\u001b\]0;title\\u0007 two\\u000athree/)
    assert.match(shown, /\\u009b31m/)
    assert.match(shown, /\\u001b\[31m\\u2028/)
    assert.doesNotMatch(shown.replaceAll('\n', ''), /[\p{Cc}\u202e\u2028]/u)
  })

  it('has one line for an entry', () => {
    const terminal = newTerminal('without colors')
    const logger = openLogger('info', terminal)
    logger.info({ requestId: 'a-1', statusCode: 200 }, 'answered')
    logger.debug('not shown')
    assert.match(
      terminal.written.join(''),
      /^\[[\d:]{8}\] INFO: answered \{"requestId":"a-1","statusCode":200\}\n$/,
    )
  })

  it('has the stack of an error and of its cause below its line', () => {
    const terminal = newTerminal('without colors')
    const logger = openLogger('info', terminal)
    const cause = new Error('the disk')
    const err = Object.assign(new Error('no commit', { cause }), { code: 'EIO' })
    logger.error({ err, requestId: 'a-1' }, 'failed')
    assert.match(
      terminal.written.join(''),
      /^\[[\d:]{8}\] ERROR: failed \{"requestId":"a-1","err":\{"code":"EIO"\}\}\n {4}Error: no commit\n {8}at .+\n(?: {8}at .+\n)*? {4}caused by: Error: the disk\n {8}at /,
    )
  })

  it('shows what is no error, and what has no message', () => {
    const terminal = newTerminal('without colors')
    const logger = openLogger('trace', terminal)
    logger.warn({ err: 'a text' })
    logger.trace({ err: null, time: 'noon', level: 'high' }, 'odd')
    assert.match(
      terminal.written.join(''),
      /^\[[\d:]{8}\] WARN: \{"err":"a text"\}\n\[[\d:]{8}\] INFO: odd \{"err":null\}\n$/,
    )
  })

  it('has colors where the terminal has them, and no others', () => {
    const terminal = newTerminal('with colors')
    const logger = openLogger('trace', terminal)
    for (const level of ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const) {
      logger[level]({ color: '\u001b[31m' }, 'said \u001b[31m')
      const line = terminal.written.pop() ?? ''
      const upper = level.toUpperCase()
      assert.ok(!line.includes(` ${upper}:`), 'the level has a color')
      const plain = stripVTControlCharacters(line)
      assert.ok(plain.endsWith(`${upper}: said \\u001b[31m {"color":"\\u001b[31m"}\n`), plain)
    }
  })
})
