import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { programEnv } from '../support/child.ts'
import { newFolder } from '../support/folder.ts'
import { operatorToken, startService } from '../support/service.ts'

const root = join(import.meta.dirname, '..', '..')
const source = pathToFileURL(join(root, 'client', 'index.ts')).href
const page = readFileSync(join(root, 'docs', 'client.md'), 'utf8')
const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code).join('')

describe('docs/client.md', () => {
  it('has examples that run one after the other and print what their comments say', async () => {
    const expected = [...examples.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(
      ([, text]) => text,
    )
    assert.ok(expected.length >= 8)
    const service = await startService('sqlite::memory:')
    const program = join(newFolder(), 'examples.mts')
    const code = examples
      .replace('plant-store/client', source)
      .replace('http://127.0.0.1:3000', service.url)
      // An example prints one line, however long.
      .replaceAll('console.log(', 'print(')
    writeFileSync(program, `${printing}\n${code}`)
    const { stdout } = await promisify(execFile)(process.execPath, [program], {
      env: { ...programEnv, TOKEN: operatorToken },
    })
    const printed = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/etag: '.*?'/, 'etag: …'))
    assert.deepEqual(printed, expected)
  })

  it('explains every call, option and error class of the client', () => {
    const names = ['create', 'get', 'replace', 'update', 'delete', 'list', 'importPlants', 'events']
    names.push('position', 'mirror')
    for (const name of names) assert.match(examples, new RegExp(`store\\.${name}\\(`))
    const others = ['url', 'token', 'fetch', 'timeoutMs', 'retries', 'onRetry', 'PositionGoneError']
    for (const name of others) assert.match(page, new RegExp(`\`${name}\``))
  })
})

const printing = `
import { inspect } from 'node:util'
const show = (value: unknown) => typeof value === 'string' ? value : inspect(value, { breakLength: Infinity })
const print = (...values: unknown[]) => process.stdout.write(values.map(show).join(' ') + '\\n')
`
