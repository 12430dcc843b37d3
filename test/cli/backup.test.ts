import assert from 'node:assert/strict'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { preload, start } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { ends, endsWith, newStore as newPlants, runShell } from './ends.ts'

/** A folder with a store of three plants and a token, at the default path. */
async function newStore(): Promise<string> {
  const folder = await newPlants([1, 2, 3].map((id) => `{"id":${id},"name":"x"}\n`).join(''))
  await ends('token create --name Ada', 0, /./, folder)
  return folder
}

const restoreTo = (path: string, file: string) => `restore ${file} --database sqlite:${path}`

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
    const isOwn = (path: string) => (statSync(join(folder, path)).mode & 0o777) === 0o600
    const said = '3 plants and 1 token in'
    await ends('backup backup.db', 0, `Backed up: ${said} backup.db, checked.\n`, folder)
    assert.deepEqual(readdirSync(folder), ['backup.db', 'data'])
    const restored = `Restored: ${said} sqlite:new/plants.db, checked.\n`
    await ends(restoreTo('new/plants.db', 'backup.db'), 0, restored, folder)
    assert.deepEqual(readdirSync(join(folder, 'new')), ['plants.db'])
    assert.ok(isOwn('backup.db') && isOwn('new/plants.db'))
    for (const command of ['export --quiet', 'token list']) {
      const before = await ends(command, 0, '', folder)
      const after = await ends(`${command} --database sqlite:new/plants.db`, 0, '', folder)
      assert.equal(after, before)
    }
  })

  const namings: [title: string, code: string][] = [
    ['in one step', "fs.renameSync = () => process.kill(process.pid, 'SIGKILL')"],
    [
      'where there are no links',
      "fs.linkSync = () => { throw Object.assign(new Error(), { code: 'EPERM', syscall: 'link' }) }",
    ],
  ]
  for (const [title, code] of namings) {
    it(`gives a complete file its name ${title}`, async () => {
      const folder = await newStore()
      const all = `import fs from 'node:fs'; ${code}
        process.getBuiltinModule('node:module').syncBuiltinESMExports()`
      const { ended } = start(['backup', 'b.db'], { folder, env: { NODE_OPTIONS: preload(all) } })
      await endsWith(ended, 0, /^Backed up/)
      assert.deepEqual(readdirSync(folder), ['b.db', 'data'])
      await ends(restoreTo('new.db', 'b.db'), 0, /^Restored: 3 plants/, folder)
    })
  }

  it('may have a name that SQLite would take for a URL', async () => {
    const folder = await newStore()
    await ends('backup file:b.db', 0, /^Backed up: .* in file:b\.db, checked\.\n$/, folder)
    await ends(restoreTo('file:c.db', 'file:b.db'), 0, /^Restored/, folder)
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
      await ends(args, 0, /^/, folder)
    })
  }

  it('names the tools of PostgreSQL instead', async () => {
    const url = await postgres.newUrl()
    const folder = newFolder()
    await ends(`backup b.db --database ${url}`, 78, /pg_dump/, folder)
    await ends(`restore b.db --database ${url}`, 78, /pg_restore/, folder)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('streams to standard output, and restore reads from standard input', async () => {
    const folder = await newStore()
    const line = `plant_store backup - | plant_store ${restoreTo('new/plants.db', '-')}`
    const said =
      /^Backed up: 3 plants and 1 token in standard output, checked\.\nRestored: 3 plants and 1 token in sqlite:new\/plants\.db, checked\.\n$/
    const shown = await endsWith(runShell(`${line} && ls -A`, { folder }), 0, said)
    assert.equal(shown, 'data\nnew\n')
  })

  it('gzips a file whose name ends in .gz, and restore sees it by its content', async () => {
    const folder = await newStore()
    await ends('backup monday.db.gz', 0, /^Backed up: .* in monday\.db\.gz, checked/, folder)
    assert.deepEqual(readdirSync(folder), ['data', 'monday.db.gz'])
    assert.equal(statSync(join(folder, 'monday.db.gz')).mode & 0o777, 0o600)
    const plain = gunzipSync(readFileSync(join(folder, 'monday.db.gz')))
    assert.equal(plain.toString('latin1', 0, 15), 'SQLite format 3')
    renameSync(join(folder, 'monday.db.gz'), join(folder, 'monday'))
    await ends(`${restoreTo('plants.db', 'monday')} --quiet`, 0, '', folder)
    assert.deepEqual(readdirSync(folder), ['data', 'monday', 'plants.db'])
  })

  it('says in one line that there is no temporary folder', async () => {
    const folder = await newStore()
    const { ended } = start(['backup', '-'], { folder, env: { TMPDIR: '/no' } })
    const said = 'Cannot write a temporary file in /no (TMPDIR): there is no such file or folder.\n'
    await endsWith(ended, 73, said)
  })

  it('leaves nothing behind when nobody reads standard output', async () => {
    const folder = await newStore()
    const temporary = newFolder()
    const running = start(['backup', '-'], { folder, env: { TMPDIR: temporary } })
    running.child.stdout?.destroy()
    await endsWith(running.ended, 141, '')
    assert.deepEqual(readdirSync(temporary), [])
  })
})

const own = /^plant-store-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\.db\.gz$/
/** Older than any backup that a test makes. */
const older = [1, 2, 3, 4].map((day) => `plant-store-2020-01-0${day}T00-00-00-000Z.db.gz`)
const newer = 'plant-store-2999-01-01T00-00-00-000Z.db.gz'

/** A store, and a folder for its backups. */
async function newFolderOfBackups() {
  const folder = await newStore()
  const kept = join(folder, 'kept')
  mkdirSync(kept)
  const put = (...names: string[]) => {
    for (const name of names) writeFileSync(join(kept, name), name)
  }
  const keep = (count: string, said: string | RegExp) =>
    ends(`backup kept --keep ${count}`, 0, said, folder)
  return { folder, put, keep, list: () => readdirSync(kept) }
}

describe('plant-store backup --keep', () => {
  it('makes a gzipped backup with its time as the name, which others cannot read even in between', async () => {
    const { folder, keep, list } = await newFolderOfBackups()
    const modes = new Map<string, number>()
    const watcher = watch(join(folder, 'kept'), (_, name) => {
      const status = statSync(join(folder, 'kept', String(name)), { throwIfNoEntry: false })
      if (status !== undefined) modes.set(String(name), status.mode & 0o777)
    })
    releaseAfterTest(() => watcher.close())
    await keep('3', /^Backed up: 3 plants and 1 token in kept\/plant-store-\S+, checked\.\n$/)
    const [name = '', ...more] = list()
    assert.match(name, own)
    assert.deepEqual(more, [])
    assert.ok([...modes.keys()].filter((one) => one.includes('.part-')).length >= 2)
    assert.deepEqual([...new Set(modes.values())], [0o600])
    await ends(restoreTo('restored.db', `kept/${name}`), 0, /^Restored: 3 plants/, folder)
  })

  it('keeps the newest ones, and the one that it has just made though the clock was set back', async () => {
    const { put, keep, list } = await newFolderOfBackups()
    put(...older)
    await keep('3', /^Backed up: .*\nRemoved: 2 older backups\.\n$/)
    const [third, fourth, made = '', ...more] = list()
    assert.deepEqual([third, fourth, more], [older[2], older[3], []])
    put(newer)
    await keep('1 --quiet', '')
    const [last = '', ...others] = list()
    assert.deepEqual(others, [])
    assert.match(last, own)
    assert.ok(![made, newer].includes(last))
  })

  it('touches nothing that it has not made', async () => {
    const { folder, put, keep, list } = await newFolderOfBackups()
    const foreign = [
      'plants.csv',
      'other-2020-01-01T00-00-00-000Z.db.gz',
      'plant-store-2020-01-01.db.gz',
      `${older[0]}.part-0123456789ab`,
      `copy-of-${older[0]}`,
    ]
    put(...foreign)
    mkdirSync(join(folder, 'kept', older[1] ?? ''))
    await keep('1', /^Backed up/)
    const left = list().filter((name) => name === older[1] || !own.test(name))
    assert.deepEqual(left, [...foreign, older[1]].sort())
  })
})
