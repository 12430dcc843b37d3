import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { applicationId } from '../../src/store/sqlite/file.ts'
import { run, start } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { runShell } from './shell.ts'

/** A folder with a store of three plants and a token, at the default path. */
async function newStore(): Promise<string> {
  const folder = newFolder()
  await run(['token', 'create', '--name', 'Ada', '--create'], { folder })
  const input = '{"id":1,"name":"one"}\n{"id":2,"name":"two"}\n{"id":3,"name":"three"}\n'
  await run(['import', '-', '--format', 'ndjson'], { folder, input })
  return folder
}

/** Locks a database as its last connection does when it closes: nobody else can read it. */
const holdExclusively = `
  import { DatabaseSync } from 'node:sqlite'
  const db = new DatabaseSync(process.argv[1])
  db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE')
  console.log('locked')
  setTimeout(() => db.close(), 500)`

describe('plant-store backup', () => {
  it('makes one file that only its owner may read, from which restore makes the same store', async () => {
    const folder = await newStore()
    const backup = await run(['backup', 'backup.db'], { folder })
    assert.equal(backup.stderr, 'Backed up: 3 plants and 1 token in backup.db, checked.\n')
    assert.equal(backup.exitCode, 0)
    assert.deepEqual(readdirSync(folder), ['backup.db', 'data'])
    assert.equal(statSync(join(folder, 'backup.db')).mode & 0o777, 0o600)
    const restored = await run(['restore', 'backup.db', '--database', 'sqlite:new/plants.db'], {
      folder,
    })
    assert.equal(
      restored.stderr,
      'Restored: 3 plants and 1 token in sqlite:new/plants.db, checked.\n',
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

  const empty: [what: string, make: (path: string) => void][] = [
    ['an empty file', (path) => writeFileSync(path, '')],
    [
      'what an interrupted first start has left',
      (path) => {
        using db = new DatabaseSync(path)
        db.exec(`PRAGMA application_id = ${applicationId}`)
      },
    ],
  ]
  for (const [what, make] of empty) {
    it(`is not made of ${what}, which is no store`, async () => {
      const folder = newFolder()
      make(join(folder, 'empty.db'))
      const args = ['backup', 'backup.db', '--database', 'sqlite:empty.db']
      const { exitCode, stderr } = await run(args, { folder })
      assert.equal(stderr, 'empty.db is empty: no store was made yet.\n')
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), ['empty.db'])
    })
  }

  it('may have a name that SQLite would take for a URL', async () => {
    const folder = await newStore()
    const { exitCode, stderr } = await run(['backup', 'file:b.db'], { folder })
    assert.equal(stderr, 'Backed up: 3 plants and 1 token in file:b.db, checked.\n')
    assert.equal(exitCode, 0)
    const restored = ['restore', 'file:b.db', '--database', 'sqlite:file:c.db']
    assert.equal((await run(restored, { folder })).exitCode, 0)
    assert.deepEqual(readdirSync(folder), ['data', 'file:b.db', 'file:c.db'])
  })

  for (const args of [['backup', 'backup.db'], ['check']]) {
    it(`waits for a service that empties its log as it ends: ${args[0]}`, async () => {
      const folder = await newStore()
      const { waitFor } = start([join(folder, 'data/plant-store.db')], {
        folder,
        program: [process.execPath, '--input-type=module', '--eval', holdExclusively],
      })
      await waitFor(/locked/)
      const { exitCode, stdout, stderr } = await run(args, { folder })
      assert.equal(exitCode, 0, stdout + stderr)
    })
  }

  it('changes no existing file', async () => {
    const folder = await newStore()
    writeFileSync(join(folder, 'mine'), 'mine')
    const { exitCode, stderr } = await run(['backup', 'mine'], { folder })
    assert.match(stderr, /^Cannot write mine: it exists already and was not changed/)
    assert.equal(exitCode, 73)
    assert.equal(readFileSync(join(folder, 'mine'), 'utf8'), 'mine')
    assert.deepEqual(readdirSync(folder), ['data', 'mine'])
  })

  it('never takes a name that SQLite would take for its own', async () => {
    const folder = await newStore()
    const { exitCode, stderr } = await run(['backup', 'data/plant-store.db-journal'], { folder })
    assert.equal(stderr, 'data/plant-store.db-journal is a file of the store. Name another file.\n')
    assert.equal(exitCode, 73)
    assert.equal(existsSync(join(folder, 'data/plant-store.db-journal')), false)
  })

  const wrong: [what: string, spoil: (path: string) => void, message: RegExp][] = [
    [
      'of a newer release',
      (path) => {
        using db = new DatabaseSync(path)
        db.exec('PRAGMA user_version = 99')
      },
      /^\S+plant-store\.db was written by a newer release \(schema 99, this one knows \d+\)\./,
    ],
    [
      'with a damaged page',
      (path) => {
        const bytes = readFileSync(path)
        bytes.fill(0xab, bytes.length - 4_096)
        writeFileSync(path, bytes)
      },
      /^\S+plant-store\.db is damaged: nothing was kept\. Restore its last backup\.\n$/,
    ],
  ]
  for (const [what, spoil, message] of wrong) {
    it(`refuses a store ${what} in one line`, async () => {
      const folder = await newStore()
      spoil(join(folder, 'data/plant-store.db'))
      const { exitCode, stderr } = await run(['backup', 'backup.db'], { folder })
      assert.match(stderr, message)
      assert.equal(stderr.trim().split('\n').length, 1)
      assert.equal(exitCode, 78)
      assert.deepEqual(readdirSync(folder), ['data'])
    })
  }

  it('names the tools of PostgreSQL instead', async () => {
    const url = await postgres.newUrl()
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

  it('streams to standard output, and restore reads from standard input', async () => {
    const folder = await newStore()
    const line =
      'plant_store backup - | plant_store restore - --database sqlite:new/plants.db && ls -A'
    const { exitCode, stdout, stderr } = await runShell(line, { folder })
    assert.match(stderr, /^Backed up: 3 plants and 1 token in standard output, checked\.$/m)
    assert.match(stderr, /^Restored: 3 plants and 1 token in sqlite:new\/plants\.db, checked\.$/m)
    assert.equal(exitCode, 0)
    assert.equal(stdout, 'data\nnew\n')
    const exported = await run(['export', '--database', 'sqlite:new/plants.db'], { folder })
    assert.equal(exported.stdout, (await run(['export'], { folder })).stdout)
  })

  it('gzips a file whose name ends in .gz, and restore sees it by its content', async () => {
    const folder = await newStore()
    const backup = await run(['backup', 'monday.db.gz'], { folder })
    assert.equal(backup.stderr, 'Backed up: 3 plants and 1 token in monday.db.gz, checked.\n')
    assert.deepEqual(readdirSync(folder), ['data', 'monday.db.gz'])
    assert.equal(statSync(join(folder, 'monday.db.gz')).mode & 0o777, 0o600)
    const plain = gunzipSync(readFileSync(join(folder, 'monday.db.gz')))
    assert.equal(plain.toString('latin1', 0, 15), 'SQLite format 3')
    renameSync(join(folder, 'monday.db.gz'), join(folder, 'monday'))
    const restored = await run(['restore', 'monday', '--database', 'sqlite:plants.db'], { folder })
    assert.equal(restored.exitCode, 0, restored.stderr)
    assert.deepEqual(readdirSync(folder), ['data', 'monday', 'plants.db'])
  })

  it('is silent with --quiet, and so is restore', async () => {
    const folder = await newStore()
    const backup = await run(['backup', 'b.db', '--quiet'], { folder })
    assert.deepEqual(backup, { exitCode: 0, stdout: '', stderr: '' })
    const args = ['restore', 'b.db', '--quiet', '--database', 'sqlite:new.db']
    assert.deepEqual(await run(args, { folder }), { exitCode: 0, stdout: '', stderr: '' })
  })

  it('says in one line that there is no temporary folder', async () => {
    const folder = await newStore()
    const { exitCode, stderr } = await start(['backup', '-'], { folder, env: { TMPDIR: '/no' } })
      .ended
    assert.equal(
      stderr,
      'Cannot write a temporary file in /no (TMPDIR): there is no such file or folder.\n',
    )
    assert.equal(exitCode, 73)
  })

  it('leaves nothing behind when nobody reads standard output', async () => {
    const folder = await newStore()
    const temporary = newFolder()
    const running = start(['backup', '-'], { folder, env: { TMPDIR: temporary } })
    running.child.stdout?.destroy()
    const { exitCode, stderr } = await running.ended
    assert.equal(stderr, '')
    assert.equal(exitCode, 141)
    assert.deepEqual(readdirSync(temporary), [])
  })
})
