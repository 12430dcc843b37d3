import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { deliver, newSecret } from '../../src/webhooks/receiver.ts'
import { openTransport } from '../../src/webhooks/transport.ts'
import { killAfterTest } from '../support/child.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'

const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
const body = '{"id":9007199254740993,"name":"Grüne Palme","tag":"x"}'
const line = `plant.created ${body}`

const receivers = [
  { name: 'Node.js', language: 'js', file: 'receiver.mjs', program: process.execPath },
  { name: 'Python', language: 'python', file: 'receiver.py', program: 'python3' },
]

describe('docs/webhooks.md', () => {
  for (const { name, language, file, program } of receivers) {
    const isMissing = spawnSync(program, ['--version']).status !== 0
    const skip = isMissing && `${program} is not installed`

    it(`has a receiver in ${name} that verifies, answers and acts once`, { skip }, async () => {
      const [, code = ''] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
      const lines = code.split('\n').filter((one) => one.trim() !== '')
      assert.ok(lines.length > 10 && lines.length <= 25, `${lines.length} lines`)
      const path = join(newFolder(), file)
      writeFileSync(path, code)
      const secrets = { current: newSecret(), previous: undefined, previousUntil: undefined }
      const child = spawn(program, [path], {
        env: { PATH: process.env.PATH, SECRET: secrets.current, PORT: '0' },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      killAfterTest(child)
      const output = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const nextLine = async () => String((await output.next()).value)
      const [, port] = (await nextLine()).split(' ')
      const url = `http://127.0.0.1:${port}/`
      const transport = openTransport({ url, timeoutMs: 60_000 })
      releaseAfterTest(transport.close)
      const send = async (id: string, using: string) => {
        const message = { id, event: 'plant.created', body }
        const signing = { ...secrets, current: using }
        return (await deliver(transport, signing, message, () => true)).status
      }
      assert.equal(await send('one', newSecret()), 401)
      assert.equal(await send('one', secrets.current), 204)
      assert.equal(await nextLine(), line)
      assert.equal(await send('one', secrets.current), 204)
      assert.equal(await send('two', secrets.current), 204)
      // The second delivery of the first one has printed nothing in between.
      assert.equal(await nextLine(), line)
      child.kill()
      assert.equal((await output.next()).done, true)
    })
  }
})
