import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { command, endsWith, openFile, openPipe, stopAt } from './ends.ts'

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

const folder = newFolder()
const store = openSqliteStore(join(folder, 'plants.db'))
for (let id = 0; id < count; id += 1_000) {
  const page = Array.from({ length: 1_000 }, (_, at) => ({ id: BigInt(id + at), name: 'x' }))
  await store.importPlants(page, 'keep')
}
await store.close()

/** SQLite answers at once, so a command that only reads may never get back to its event loop. */
describe('a signal to a command that reads SQLite', () => {
  for (const [args, output] of [
    ['export pipe.ndjson', '/dev/null'],
    ['export -', 'pipe.ndjson'],
    ['log --follow', 'pipe.ndjson'],
  ]) {
    it(`ends a command whose reader does not read: ${args}`, { timeout: 60_000 }, async () => {
      const pipe = openPipe(join(folder, 'pipe.ndjson'))
      const line = `exec ${command} ${args} --database sqlite:plants.db > ${output}`
      const running = start([], { folder, program: ['/bin/sh', '-c', line] })
      await stopAt(running, () => isFull(pipe), /^Stopped/m)
    })
  }

  for (const args of ['export --quiet', 'log --follow']) {
    it(`ends a command that writes to a file: ${args}`, async () => {
      const path = join(newFolder(), 'out')
      const command = [...args.split(' '), '--database', 'sqlite:plants.db']
      const running = start(command, { folder, stdout: openFile(path, 'w') })
      await stopAt(running, () => statSync(path).size > 0)
      const lines = readFileSync(path, 'latin1').split('\n').length - 1
      assert.ok(lines > 0 && lines < count, `${lines} lines`)
    })
  }

  for (const args of ['export all.ndjson.gz', 'backup all.db.gz']) {
    it(`leaves no draft of a file: ${args}`, async () => {
      const to = newFolder()
      const database = `sqlite:${join(folder, 'plants.db')}`
      const running = start([...args.split(' '), '--database', database], { folder: to })
      const hasBegun = () => readdirSync(to).some((name) => statSync(join(to, name)).size > 0)
      await stopAt(running, hasBegun)
      assert.deepEqual(readdirSync(to), [])
    })
  }

  it('leaves neither a draft nor the folders that restore has made', async () => {
    const to = newFolder()
    const args = ['restore', '-', '--database', 'sqlite:new/sub/plants.db']
    const { child, ended } = start(args, { folder: to, input: '', isInputOpen: true })
    const below = join(to, 'new/sub')
    await waitUntil(() => existsSync(below) && readdirSync(below).length > 0, 'it has a draft')
    child.kill('SIGINT')
    await endsWith(ended, 130, 'Stopped.\n')
    assert.deepEqual(readdirSync(to), [])
  })

  it('ends a copy that is being compared', async () => {
    const path = join(newFolder(), 'copy.db')
    const destination = openSqliteStore(path)
    const args = ['copy', '--from', 'sqlite:plants.db', '--to', `sqlite:${path}`, '--quiet']
    const isCopied = async () => (await destination.getPlant(last)) !== undefined
    await stopAt(start(args, { folder }), isCopied, /^Stopped\.$/m)
  })
})

describe('a signal to a command that waits for a named pipe', () => {
  const args = 'import plants.csv --rejects rejects --database sqlite:plants.db'.split(' ')

  it('ends an import whose rejects nobody has opened', { timeout: 60_000 }, async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'plants.csv'), 'id,name\nx,a\n')
    execFileSync('mkfifo', [join(folder, 'rejects')])
    await stopAt(start(args, { folder }), () => existsSync(join(folder, 'plants.db')))
  })

  it('ends an import whose rejects nobody reads', { timeout: 60_000 }, async () => {
    const folder = newFolder()
    const pipe = openPipe(join(folder, 'pipe'))
    writeFileSync(join(folder, 'plants.csv'), `id,name\n${'x,a\n'.repeat(5_000)}`)
    const said = /^Stopped after line \d+\. .*Run the same command again/m
    await stopAt(start(args.with(3, 'pipe'), { folder }), () => isFull(pipe), said)
  })

  it('erases the progress bar', {
    skip: !existsSync('/usr/bin/script') && 'there is no program "script"',
    timeout: 60_000,
  }, async () => {
    const folder = newFolder()
    const pipe = openPipe(join(folder, 'pipe'))
    const restore = `${command} restore pipe --database sqlite:new.db`
    const { ended, output } = start([], {
      folder,
      env: { PATH: process.env.PATH ?? '' },
      program: ['/usr/bin/script', '-qec', `echo $$ > pid; exec ${restore}`, '/dev/null'],
    })
    await waitUntil(() => {
      // Each read reports progress.
      isFull(pipe)
      return output.stdout.includes('restore 0 MiB')
    }, 'a bar is shown')
    process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGTERM')
    const { stdout } = await ended
    assert.ok(stdout.endsWith('\r\u001b[KStopped.\r\n'), JSON.stringify(stdout))
    assert.deepEqual(readdirSync(folder).sort(), ['pid', 'pipe'])
  })
})
