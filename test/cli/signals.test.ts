import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { killAfterTest } from '../support/child.ts'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))
const count = 200_000
const last = BigInt(count - 1)

function isFull(pipe: number): boolean {
  try {
    writeSync(pipe, ' ')
    return false
  } catch {
    return true
  }
}

/** SQLite answers at once, so a command that only reads may never get back to its event loop. */
describe('a signal to a command that reads SQLite', () => {
  let folder: string

  before(async () => {
    folder = newFolder()
    const store = openSqliteStore(join(folder, 'plants.db'))
    for (let id = 0; id < count; id += 1_000) {
      const page = Array.from({ length: 1_000 }, (_, at) => ({ id: BigInt(id + at), name: 'x' }))
      await store.importPlants(page, 'keep')
    }
    await store.close()
  })

  for (const [args, output] of [
    ['export pipe.ndjson', '/dev/null'],
    ['export -', 'pipe.ndjson'],
    ['log --follow', 'pipe.ndjson'],
  ]) {
    it(`ends a command whose reader does not read: ${args}`, { timeout: 60_000 }, async () => {
      const path = join(folder, 'pipe.ndjson')
      if (!existsSync(path)) execFileSync('mkfifo', [path])
      const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
      const command = `"${process.execPath}" "${program}" ${args} --database sqlite:plants.db`
      const child = spawn('sh', ['-c', `exec ${command} > ${output}`], { cwd: folder })
      killAfterTest(child)
      const stderr = text(child.stderr)
      await waitUntil(() => isFull(pipe), 'the pipe is full')
      child.kill('SIGTERM')
      await once(child, 'exit')
      closeSync(pipe)
      assert.match(await stderr, /^Stopped/m)
      assert.equal(child.signalCode, 'SIGTERM')
    })
  }

  it('ends a copy that is being compared', async () => {
    const path = join(newFolder(), 'copy.db')
    const destination = openSqliteStore(path)
    const args = ['copy', '--from', 'sqlite:plants.db', '--to', `sqlite:${path}`, '--quiet']
    const { child, ended } = start(args, { folder })
    await waitUntil(async () => (await destination.getPlant(last)) !== undefined, 'all is copied')
    child.kill('SIGTERM')
    const { exitCode, stderr } = await ended
    assert.match(stderr, /^Stopped\. /)
    assert.equal(exitCode, 143)
  })
})
