import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const port = readFileSync(join(import.meta.dirname, '../../src/store/store.ts'), 'utf8')
const suite = globSync(join(import.meta.dirname, '{conformance/*,journal.test}.ts'))
  .map((file) => readFileSync(file, 'utf8'))
  .join('')

describe('the conformance suites', () => {
  const [methods = ''] = /^export interface Store \{$[\s\S]*?^\}$/m.exec(port) ?? []
  const names = [...methods.matchAll(/^ {2}(\w+)\(/gm)].map(([, name = '']) => name)
  // The queue is the same for both engines: see batcher.test.ts.
  const elsewhere = ['isFull']

  it('call every method of the port', () => {
    assert.ok(names.includes('createPlant'), 'no method was found in the port')
    const missing = names.filter((name) => !suite.includes(`.${name}(`))
    assert.deepEqual(missing, elsewhere)
  })
})
