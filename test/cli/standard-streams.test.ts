import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { withInput } from '../../src/cli/files.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { start } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'
import { call } from '../support/wire.ts'
import { ends, endsWith, newStore, openFile, readJson, runShell } from './ends.ts'

const plants = '{"id":1,"name":"a"}\n{"id":2}\n{"id":3,"name":"c"}\n'

const isFull = /^Cannot write to standard output: the disk is full\.$/m

/** Runs a command whose output nobody reads. */
function runUnread(stream: 'stdout' | 'stderr', args: string[], folder: string, input?: string) {
  const running = start(args, { folder, env: { PORT: '0' }, ...(input && { input }) })
  running.child[stream]?.destroy()
  return running.ended
}

const commands = ['--help', 'export', 'token create --name a --json', 'serve']
for (const args of commands) {
  it(`a command whose standard output is closed ends with 141 and says nothing: ${args}`, async () => {
    const folder = await newStore()
    const ended = runUnread('stdout', args.split(' '), folder)
    await endsWith(ended, 141, /^(?!.*(EPIPE| {4}at |Token))/s)
    assert.deepEqual(await readJson('token list', folder), [])
  })
}

describe('a command whose standard output is full', {
  skip: !existsSync('/dev/full') && 'there is no /dev/full',
}, () => {
  const commands = ['--help', 'export', 'token create --name a']
  for (const args of commands) {
    it(`says so in one line and ends with 74: ${args}`, async () => {
      const folder = await newStore()
      const said = 'Cannot write to standard output: the disk is full.\n'
      await endsWith(runShell(`plant_store ${args} > /dev/full`, { folder }), 74, said)
      assert.deepEqual(await readJson('token list', folder), [])
    })
  }

  it('adds no receiver and changes no secret, because nobody has seen it', async () => {
    const folder = await newStore()
    const store = openSqliteStore(join(folder, 'data/plant-store.db'))
    const add = 'plant_store webhook add https://plants.example'
    await endsWith(runShell(`${add} > /dev/full`, { folder }), 74, isFull)
    assert.deepEqual(await store.receivers.list(), [])
    await endsWith(runShell(add, { folder }), 0, /./)
    const [receiver] = await store.receivers.list()
    const rotate = `plant_store webhook rotate ${receiver?.id} > /dev/full`
    await endsWith(runShell(rotate, { folder }), 74, isFull)
    assert.deepEqual((await store.receivers.list())[0]?.secrets, receiver?.secrets)
  })

  it('keeps the first token for the next start of the service', async () => {
    const folder = newFolder()
    const env = { PORT: '0' }
    await endsWith(runShell('plant_store serve > /dev/full', { folder, env }), 74, isFull)
    assert.deepEqual(await readJson('token list', folder), [])
    await start(['serve'], { folder, env }).waitFor(/token {5}plst_/)
  })

  for (const flags of ['--demo', '--workers 2']) {
    it(`ends a service whose start fails, even if its input does not end: ${flags}`, {
      timeout: 60_000,
    }, async () => {
      const env = { PORT: '0', DATABASE_URL: await postgres.newUrl() }
      const input = { input: '', isInputOpen: true }
      const options = { folder: newFolder(), env, stdout: openFile('/dev/full', 'w'), ...input }
      const { ended } = start(['serve', '--until-stdin-ends', ...flags.split(' ')], options)
      await endsWith(ended, 74, isFull)
    })
  }

  it('does not stop the service when the log is full', async () => {
    const log = openFile('/dev/full', 'w')
    const env = { PORT: '0', LOG_LEVEL: 'debug' }
    const service = start(['serve'], { folder: newFolder(), env, stderr: log })
    const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
    for (let count = 0; count < 10; count++) {
      assert.equal((await call(url, { path: '/healthz' })).status, 200)
    }
    service.child.kill('SIGTERM')
    await endsWith(service.ended, 0, '')
  })
})

it('a command whose standard error is closed works to the end, and ends with its usual code', async () => {
  const folder = newFolder()
  const bad = '{"id":"x"}\n'.repeat(300)
  const args = ['import', '-', '--format', 'ndjson', '--database', 'sqlite:plants.db']
  await endsWith(runUnread('stderr', args, folder, bad + plants + bad), 65, '')
  const exported = await ends('export --quiet --database sqlite:plants.db', 0, '', folder)
  assert.equal(exported, '{"id":1,"name":"a"}\n{"id":3,"name":"c"}\n')
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
      await endsWith(ended, 65, /./)
    })
  }

  it('does not keep what it has read', async () => {
    const input = Object.assign(Readable.from(makeChunks()), { fd: 0 })
    await withInput('-', { input } as Terminal, async (opened) => {
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
