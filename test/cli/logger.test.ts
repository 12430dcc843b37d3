import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { openLogger } from '../../src/cli/serve/logger.ts'

function newTerminal() {
  const written: string[] = []
  const stream = new Writable({
    write(text, _, done) {
      written.push(String(text))
      done()
    },
  })
  return Object.assign(stream, { isTTY: true, written })
}

describe('the log on a terminal', () => {
  it('shows control characters as escapes, whichever member has them', async () => {
    const terminal = newTerminal()
    const logger = await openLogger('info', terminal)
    logger.info({ path: '/\u009b31m', err: new Error('\u001b[2J') }, 'one \u001b]0;title\u0007 two')
    const shown = terminal.written.join('')
    assert.match(shown, /one \\u001b\]0;title\\u0007 two/)
    assert.match(shown, /\\u009b31m/)
    assert.doesNotMatch(shown.replaceAll('\n', ''), /\p{Cc}/u)
  })

  it('has one line for an entry', async () => {
    const terminal = newTerminal()
    const logger = await openLogger('info', terminal)
    logger.info({ requestId: 'a-1', statusCode: 200 }, 'answered')
    assert.match(
      terminal.written.join(''),
      /^\[[\d:]+\] INFO: answered \{"requestId":"a-1","statusCode":200\}\n$/,
    )
  })
})
