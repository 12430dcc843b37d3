import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { withInput } from '../../src/cli/files.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { run, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { call } from '../support/wire.ts'
import { runShell } from './shell.ts'

const plants = '{"id":1,"name":"a"}\n{"id":2}\n{"id":3,"name":"c"}\n'

async function newStore(): Promise<string> {
  const folder = newFolder()
  const env = { DATABASE_URL: 'sqlite:data/plant-store.db' }
  await run(['import', '-', '--format', 'ndjson', '--quiet'], { folder, env, input: plants })
  return folder
}

/** Runs a command whose output nobody reads. */
function runUnread(stream: 'stdout' | 'stderr', args: string[], folder: string, input?: string) {
  const running = start(args, { folder, env: { PORT: '0' }, ...(input && { input }) })
  running.child[stream]?.destroy()
  return running.ended
}

async function listTokens(folder: string): Promise<unknown[]> {
  return JSON.parse((await run(['token', 'list', '--json'], { folder })).stdout)
}

describe('a command whose standard output is closed', () => {
  const commands = [
    ['--help'],
    ['openapi'],
    ['export'],
    ['token', 'list', '--json'],
    ['token', 'create', '--name', 'a', '--json'],
    ['serve'],
  ]
  for (const args of commands) {
    it(`ends with 141 and says nothing: ${args.join(' ')}`, async () => {
      const folder = await newStore()
      const { exitCode, stderr } = await runUnread('stdout', args, folder)
      assert.doesNotMatch(stderr, /EPIPE| {4}at |Token/)
      assert.equal(exitCode, 141)
      assert.deepEqual(await listTokens(folder), [])
    })
  }
})

describe('a command whose standard output is full', {
  skip: !existsSync('/dev/full') && 'there is no /dev/full',
}, () => {
  const commands = ['--help', 'openapi', 'export', 'token list --json', 'token create --name a']
  for (const args of commands) {
    it(`says so in one line and ends with 74: ${args}`, async () => {
      const folder = await newStore()
      const { exitCode, stderr } = await runShell(`plant_store ${args} > /dev/full`, { folder })
      assert.equal(stderr, 'Cannot write to standard output: the disk is full.\n')
      assert.equal(exitCode, 74)
      assert.deepEqual(await listTokens(folder), [])
    })
  }

  it('adds no receiver and changes no secret, because nobody has seen it', async () => {
    const folder = await newStore()
    const store = openSqliteStore(join(folder, 'data/plant-store.db'))
    const add = 'plant_store webhook add https://plants.example'
    assert.equal((await runShell(`${add} > /dev/full`, { folder })).exitCode, 74)
    assert.deepEqual(await store.receivers.list(), [])
    assert.equal((await runShell(add, { folder })).exitCode, 0)
    const [receiver] = await store.receivers.list()
    const rotate = `plant_store webhook rotate ${receiver?.id} > /dev/full`
    assert.equal((await runShell(rotate, { folder })).exitCode, 74)
    assert.deepEqual((await store.receivers.list())[0]?.secrets, receiver?.secrets)
  })

  it('keeps the first token for the next start of the service', async () => {
    const folder = newFolder()
    const env = { PORT: '0' }
    const { exitCode, stderr } = await runShell('plant_store serve > /dev/full', { folder, env })
    assert.match(stderr, /^Cannot write to standard output: the disk is full\.$/m)
    assert.equal(exitCode, 74)
    assert.deepEqual(await listTokens(folder), [])
    await start(['serve'], { folder, env }).waitFor(/token {5}plst_/)
  })

  it('does not stop the service when the log is full', async () => {
    const log = openSync('/dev/full', 'w')
    releaseAfterTest(() => closeSync(log))
    const env = { PORT: '0', LOG_LEVEL: 'debug' }
    const service = start(['serve'], { folder: newFolder(), env, stderr: log })
    const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
    for (let count = 0; count < 10; count++) {
      assert.equal((await call(url, { path: '/healthz' })).status, 200)
    }
    service.child.kill('SIGTERM')
    assert.equal((await service.ended).exitCode, 0)
  })
})

describe('a command whose standard output is a file', () => {
  const count = 100_000
  const ends: [args: string, exitCode: number, message: string][] = [
    ['export --quiet', 143, 'Stopped: the output is incomplete. Run the command again.\n'],
    ['log --follow', 0, ''],
  ]
  for (const [args, exitCode, message] of ends) {
    it(`ends at a signal: ${args}`, async () => {
      const folder = newFolder()
      const store = openSqliteStore(join(folder, 'plants.db'))
      for (let id = 0; id < count; id += 1_000) {
        const page = Array.from({ length: 1_000 }, (_, at) => ({ id: BigInt(id + at), name: 'x' }))
        await store.importPlants(page, 'keep')
      }
      await store.close()
      const path = join(folder, 'out')
      const file = openSync(path, 'w')
      releaseAfterTest(() => closeSync(file))
      const command = [...args.split(' '), '--database', 'sqlite:plants.db']
      const { child, ended } = start(command, { folder, stdout: file })
      await waitUntil(() => statSync(path).size > 0, 'it has begun to write')
      child.kill('SIGTERM')
      assert.deepEqual(await ended, { exitCode, stdout: '', stderr: message })
      const lines = readFileSync(path, 'latin1').split('\n').length - 1
      assert.ok(lines > 0 && lines < count, `${lines} lines`)
    })
  }
})

describe('a command whose standard error is closed', () => {
  it('does its work to the end, and ends with the code of its table', async () => {
    const folder = newFolder()
    const bad = '{"id":"x"}\n'.repeat(300)
    const args = ['import', '-', '--format', 'ndjson', '--database', 'sqlite:plants.db']
    const { exitCode } = await runUnread('stderr', args, folder, bad + plants + bad)
    assert.equal(exitCode, 65)
    const exported = await run(['export', '--database', 'sqlite:plants.db'], { folder })
    assert.equal(exported.stdout, '{"id":1,"name":"a"}\n{"id":3,"name":"c"}\n')
  })
})

describe('a command that reads standard input', () => {
  const damaged = Buffer.from([0x1f, 0x8b, 8, 0xff, 0xff])
  const commands: [title: string, args: string, input: string | Buffer][] = [
    ['a header without an id', 'import - --format csv', 'foo,bar\n'],
    ['damaged gzip', 'import - --format csv', damaged],
    ['a damaged backup', 'restore -', damaged],
  ]
  for (const [title, args, input] of commands) {
    it(`ends at ${title}, even if its writer does not`, async () => {
      const command = [...args.split(' '), '--database', 'sqlite:plants.db']
      const { ended } = start(command, { folder: newFolder(), input, isInputOpen: true })
      assert.equal((await ended).exitCode, 65)
    })
  }

  it('does not keep what it has read', async () => {
    const input = Object.assign(Readable.from(makeChunks()), { fd: 0 })
    await withInput('-', { input } as Terminal, new AbortController().signal, async (opened) => {
      const chunks: WeakRef<Buffer>[] = []
      for await (const chunk of opened.chunks) chunks.push(new WeakRef(chunk))
      await nextTurn()
      setFlagsFromString('--expose-gc')
      runInNewContext('gc')()
      const kept = chunks.filter((chunk) => chunk.deref() !== undefined).length
      assert.ok(kept <= 1, `${kept} of ${chunks.length} chunks are kept`)
    })
  })
})

async function* makeChunks(): AsyncGenerator<Buffer> {
  for (let count = 0; count < 8; count++) yield Buffer.alloc(64 * 1024)
}
