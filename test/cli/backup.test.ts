import assert from 'node:assert/strict'
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'

/** A folder with a store of three plants and a token, at the default path. */
async function newStore(): Promise<string> {
  const folder = newFolder()
  await run(['token', 'create', '--name', 'Ada', '--create'], { folder })
  const input = '{"id":1,"name":"one"}\n{"id":2,"name":"two"}\n{"id":3,"name":"three"}\n'
  await run(['import', '-', '--format', 'ndjson'], { folder, input })
  return folder
}

describe('plant-store backup', () => {
  it('makes one file that only its owner may read, from which restore makes the same store', async () => {
    const folder = await newStore()
    const backup = await run(['backup', 'backup.db'], { folder })
    assert.equal(backup.stderr, 'Backed up: 3 plants and 1 tokens in backup.db, checked.\n')
    assert.equal(backup.exitCode, 0)
    assert.deepEqual(readdirSync(folder), ['backup.db', 'data'])
    assert.equal(statSync(join(folder, 'backup.db')).mode & 0o777, 0o600)
    const restored = await run(['restore', 'backup.db', '--database', 'sqlite:new/plants.db'], {
      folder,
    })
    assert.equal(
      restored.stderr,
      'Restored: 3 plants and 1 tokens in sqlite:new/plants.db, checked.\n',
    )
    assert.equal(restored.exitCode, 0)
    assert.deepEqual(readdirSync(join(folder, 'new')), ['plants.db'])
    assert.equal(statSync(join(folder, 'new/plants.db')).mode & 0o777, 0o600)
    for (const command of ['export', 'token list']) {
      const args = command.split(' ')
      const before = await run(args, { folder })
      const after = await run([...args, '--database', 'sqlite:new/plants.db'], { folder })
      assert.equal(after.stdout, before.stdout)
    }
  })

  it('changes no existing file', async () => {
    const folder = await newStore()
    writeFileSync(join(folder, 'mine'), 'mine')
    const { exitCode, stderr } = await run(['backup', 'mine'], { folder })
    assert.match(stderr, /^Cannot write mine: it exists already and was not changed/)
    assert.equal(exitCode, 73)
    assert.equal(readFileSync(join(folder, 'mine'), 'utf8'), 'mine')
    assert.deepEqual(readdirSync(folder), ['data', 'mine'])
  })

  it('names the tools of PostgreSQL instead', async () => {
    const url = (await engines.find(({ name }) => name === 'PostgreSQL')?.newUrl()) ?? ''
    for (const args of [
      ['backup', 'b.db'],
      ['restore', 'b.db'],
    ]) {
      const folder = newFolder()
      const { exitCode, stderr } = await run([...args, '--database', url], { folder })
      assert.match(stderr, /pg_dump|pg_restore/)
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), [])
    }
  })
})

/** What is wrong, how to make it so, and the message. */
const broken: [title: string, spoil: (folder: string) => void, message: RegExp][] = [
  ['a file that is missing', () => {}, /^Cannot (read|open).*backup\.db/],
  [
    'a file of another program',
    (folder) => writeFileSync(join(folder, 'backup.db'), 'hello'),
    /is not a database of Plant Store/,
  ],
  ['an empty file', (folder) => writeFileSync(join(folder, 'backup.db'), ''), /is empty/],
  [
    'a file that was cut short',
    (folder) => {
      copyFileSync(join(folder, 'good.db'), join(folder, 'backup.db'))
      truncateSync(join(folder, 'backup.db'), 8_192)
    },
    /malformed|damaged|corrupt/,
  ],
  [
    'a file with a page overwritten',
    (folder) => {
      const bytes = readFileSync(join(folder, 'good.db'))
      writeFileSync(join(folder, 'backup.db'), bytes.fill(0xaa, 4_096, 12_288))
    },
    /malformed|damaged/,
  ],
]

describe('plant-store restore leaves nothing behind for', () => {
  for (const [title, spoil, message] of broken) {
    it(title, async () => {
      const folder = await newStore()
      await run(['backup', 'good.db'], { folder })
      spoil(folder)
      const { exitCode, stderr } = await run(
        ['restore', 'backup.db', '--database', 'sqlite:new/plants.db'],
        { folder },
      )
      assert.match(stderr, message)
      assert.equal(stderr.trimEnd().split('\n').length, 1)
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(join(folder, 'new')), [])
    })
  }

  it('a store that was not closed, because its log is a part of it', async () => {
    const folder = await newStore()
    copyFileSync(join(folder, 'data/plant-store.db'), join(folder, 'crashed.db'))
    writeFileSync(join(folder, 'crashed.db-wal'), 'the rest')
    const args = ['restore', 'crashed.db', '--database', 'sqlite:new/plants.db']
    const { exitCode, stderr } = await run(args, { folder })
    assert.match(stderr, /^crashed\.db-wal belongs to crashed\.db/)
    assert.equal(exitCode, 78)
    assert.deepEqual(readdirSync(join(folder, 'new')), [])
  })

  it('a path that exists or has the log of another database', async () => {
    const folder = await newStore()
    await run(['backup', 'good.db'], { folder })
    const taken = await run(['restore', 'good.db'], { folder })
    assert.match(taken.stderr, /^data\/plant-store\.db exists and was not changed/)
    assert.equal(taken.exitCode, 78)
    writeFileSync(join(folder, 'plants.db-wal'), 'old')
    const log = await run(['restore', 'good.db', '--database', 'sqlite:plants.db'], { folder })
    assert.match(log.stderr, /^plants\.db-wal exists/)
    assert.deepEqual(readdirSync(folder), ['data', 'good.db', 'plants.db-wal'])
  })
})
