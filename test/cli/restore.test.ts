import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { run, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { runShell } from './shell.ts'

/** A folder with a store at the default path, and a backup of it. */
async function newBackup() {
  const folder = newFolder()
  const input = '{"id":1,"name":"one"}\n{"id":2,"name":"two"}\n'
  await run(['import', '-', '--format', 'ndjson', '--create'], { folder, input })
  await run(['backup', 'good.db'], { folder })
  return { folder, backup: readFileSync(join(folder, 'good.db')) }
}

/** The damage, the file made from a good backup, and the message. */
const broken: [title: string, spoil: (backup: Buffer) => Buffer, message: string][] = [
  [
    'a file of another program',
    () => Buffer.from('hello'),
    'bad.db is not a backup of Plant Store.',
  ],
  ['an empty file', () => Buffer.alloc(0), 'bad.db is empty.'],
  [
    'a file that was cut short',
    (backup) => backup.subarray(0, 8_192),
    'bad.db is damaged. Restore another backup.',
  ],
  [
    'a file with overwritten pages',
    (backup) => Buffer.from(backup).fill(0xaa, 4_096, 12_288),
    'bad.db is damaged. Restore another backup.',
  ],
  [
    'a file of a newer release',
    (backup) => {
      const newer = Buffer.from(backup)
      newer.writeUInt32BE(999, 60)
      return newer
    },
    'bad.db was written by a newer release. Restore it with that release.',
  ],
  [
    'gzip that was cut short',
    (backup) => gzipSync(backup).subarray(0, -20),
    'bad.db: the gzip data is damaged or incomplete.',
  ],
  ['gzip of another file', () => gzipSync('hello'), 'bad.db is not a backup of Plant Store.'],
]

describe('plant-store restore leaves nothing behind and ends with 65 for', () => {
  for (const [title, spoil, message] of broken) {
    it(title, async () => {
      const { folder, backup } = await newBackup()
      writeFileSync(join(folder, 'bad.db'), spoil(backup))
      const args = ['restore', 'bad.db', '--database', 'sqlite:new/plants.db']
      const { exitCode, stderr } = await run(args, { folder })
      assert.equal(stderr, `${message}\n`)
      assert.equal(exitCode, 65)
      assert.deepEqual(readdirSync(folder), ['bad.db', 'data', 'good.db'])
    })
  }

  it('standard input that is not a backup', async () => {
    const folder = newFolder()
    const line = 'echo hello | plant_store restore - --database sqlite:plants.db'
    const { exitCode, stderr } = await runShell(line, { folder })
    assert.equal(stderr, 'Standard input is not a backup of Plant Store.\n')
    assert.equal(exitCode, 65)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('a store that was not closed, because its log is a part of it', async () => {
    const { folder } = await newBackup()
    copyFileSync(join(folder, 'good.db'), join(folder, 'crashed.db'))
    writeFileSync(join(folder, 'crashed.db-wal'), 'the rest')
    symlinkSync('crashed.db', join(folder, 'link.db'))
    for (const file of ['crashed.db', 'link.db']) {
      const args = ['restore', file, '--database', 'sqlite:new/plants.db']
      const { exitCode, stderr } = await run(args, { folder })
      assert.match(stderr, new RegExp(`crashed\\.db-wal belongs to ${file}`))
      assert.equal(exitCode, 65)
      assert.equal(existsSync(join(folder, 'new')), false)
    }
  })
})

/** Opens, but its beginning cannot be read. */
const unreadable = '/proc/self/mem'
const noMem = existsSync(unreadable) ? false : 'there is no /proc here'

describe('plant-store restore', () => {
  it('ends with 66 for a file that cannot be read', async () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'folder'))
    const files = { 'none.db': 'there is no such file or folder', folder: 'it is a folder' }
    for (const [file, reason] of Object.entries(files)) {
      const args = ['restore', file, '--database', 'sqlite:new/plants.db']
      const { exitCode, stderr } = await run(args, { folder })
      assert.equal(stderr, `Cannot read ${file}: ${reason}.\n`)
      assert.equal(exitCode, 66)
      assert.deepEqual(readdirSync(folder), ['folder'])
    }
  })

  it('blames the file that it reads, not the one that it writes', { skip: noMem }, async () => {
    const folder = newFolder()
    const args = ['restore', unreadable, '--database', 'sqlite:new/plants.db']
    const { exitCode, stderr } = await run(args, { folder })
    assert.equal(stderr, `Cannot read ${unreadable}: the disk reports an error.\n`)
    assert.equal(exitCode, 66)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('ends with 73 for a folder that cannot be made', async () => {
    const { folder } = await newBackup()
    const args = ['restore', 'good.db', '--database', 'sqlite:good.db/new/plants.db']
    const { exitCode, stderr } = await run(args, { folder })
    assert.equal(
      stderr,
      'Cannot write good.db/new/plants.db: a part of the path is not a folder.\n',
    )
    assert.equal(exitCode, 73)
  })

  it('leaves the store of another restore alone that was quicker', async () => {
    const { folder, backup } = await newBackup()
    const to = ['--database', 'sqlite:new/plants.db']
    const slow = start(['restore', '-', ...to], { folder, input: '', isInputOpen: true })
    await waitUntil(() => existsSync(join(folder, 'new')), 'the slow one has made the folder')
    assert.equal((await run(['restore', 'good.db', ...to], { folder })).exitCode, 0)
    slow.child.stdin?.end(backup)
    const { exitCode, stderr } = await slow.ended
    assert.equal(stderr, 'Cannot write new/plants.db: it exists already and was not changed.\n')
    assert.equal(exitCode, 73)
    assert.deepEqual(readdirSync(join(folder, 'new')), ['plants.db'])
  })

  it('ends with 73 for a path that exists or has the log of another database', async () => {
    const { folder } = await newBackup()
    const taken = await run(['restore', 'good.db'], { folder })
    assert.match(taken.stderr, /^data\/plant-store\.db exists and was not changed/)
    assert.equal(taken.exitCode, 73)
    writeFileSync(join(folder, 'plants.db-wal'), 'old')
    const log = await run(['restore', 'good.db', '--database', 'sqlite:plants.db'], { folder })
    assert.match(log.stderr, /^plants\.db-wal exists/)
    assert.equal(log.exitCode, 73)
    assert.deepEqual(readdirSync(folder), ['data', 'good.db', 'plants.db-wal'])
  })
})

/** Creates plants at a service on this store, and answers its positions, the oldest first. */
async function createAt(url: string, ids: readonly number[]): Promise<string[]> {
  const service = await startService(url)
  for (const id of ids) await service.create(JSON.stringify({ id, name: 'x' }))
  const { body } = await service.call({ path: '/events' })
  await service.close()
  return JSON.parse(body).map(({ position }: { position: string }) => position)
}

describe('the journal of a store that was restored', () => {
  it('has the changes of the backup and knows no position from before', async () => {
    const folder = newFolder()
    const url = `sqlite:${join(folder, 'plants.db')}`
    await createAt(url, [1, 2])
    await run(['backup', 'good.db', '--database', url], { folder })
    const before = await createAt(url, [3, 4])
    assert.equal(before.length, 4)
    rmSync(join(folder, 'plants.db'))
    const { exitCode } = await run(['restore', 'good.db', '--database', url], { folder })
    assert.equal(exitCode, 0)
    // The new changes have the numbers of those that are lost.
    for (const ids of [[], [5, 6]]) {
      const now = await createAt(url, ids)
      const service = await startService(url)
      for (const position of before) {
        const { status, body } = await service.call({ path: `/events?after=${position}` })
        assert.equal(status, 410)
        assert.equal(JSON.parse(body).error, 41000)
      }
      const { body } = await service.call({ path: `/events?after=${now[0]}` })
      const rest = JSON.parse(body).map(({ plant }: { plant: { id: number } }) => plant.id)
      assert.deepEqual(rest, [2, ...ids])
      await service.close()
    }
  })
})

describe('a store that is damaged', () => {
  for (const command of ['export', 'token list', 'backup b.db', 'serve --port 0']) {
    it(`is reported in one line, without a stack trace: ${command}`, async () => {
      const { folder } = await newBackup()
      const path = join(folder, 'data/plant-store.db')
      writeFileSync(path, readFileSync(path).fill(0xaa, 4_096))
      const { exitCode, stderr } = await run(command.split(' '), { folder })
      const lines = stderr.split('\n').filter((line) => !line.includes('"listening"'))
      assert.match(lines.join('\n'), /^[^\n]*it is damaged; restore a backup\.\n$/)
      assert.ok(exitCode === 74 || exitCode === 78, `ended with ${exitCode}`)
    })
  }
})
