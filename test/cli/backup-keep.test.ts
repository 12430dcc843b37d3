import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { withoutRights } from '../support/rights.ts'

const database = 'sqlite:plant-store.db'
const own = /^plant-store-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z\.db\.gz$/
/** Older than any backup that a test makes. */
const older = [1, 2, 3, 4].map((day) => `plant-store-2020-01-0${day}T00-00-00-000Z.db.gz`)
const newer = 'plant-store-2999-01-01T00-00-00-000Z.db.gz'

/** A store with one plant, and an empty folder for its backups. */
async function newStore() {
  const folder = newFolder()
  mkdirSync(join(folder, 'kept'))
  const input = '{"id":1,"name":"Fern"}\n'
  const args = ['import', '-', '--format', 'ndjson', '--database', database]
  await run(args, { folder, input })
  const put = (...names: string[]) => {
    for (const name of names) writeFileSync(join(folder, 'kept', name), name)
  }
  const keep = (count: string, ...flags: string[]) =>
    run(['backup', 'kept', '--keep', count, '--database', database, ...flags], { folder })
  return { folder, put, keep, list: () => readdirSync(join(folder, 'kept')) }
}

describe('plant-store backup --keep', () => {
  it('makes a gzipped backup with its time as the name, which can be restored', async () => {
    const { folder, keep, list } = await newStore()
    const { exitCode, stderr } = await keep('3')
    const [name = '', ...more] = list()
    assert.match(name, own)
    assert.deepEqual(more, [])
    assert.equal(stderr, `Backed up: 1 plant and 0 tokens in kept/${name}, checked.\n`)
    assert.equal(exitCode, 0)
    assert.equal(statSync(join(folder, 'kept', name)).mode & 0o777, 0o600)
    const args = ['restore', join('kept', name), '--database', 'sqlite:restored.db']
    assert.equal((await run(args, { folder })).exitCode, 0)
    const exported = await run(['export', '--database', 'sqlite:restored.db'], { folder })
    assert.equal(exported.stdout, '{"id":1,"name":"Fern"}\n')
  })

  it('makes no file that others can read, not even for a moment', async () => {
    const { folder, keep } = await newStore()
    const modes = new Map<string, number>()
    const watcher = watch(join(folder, 'kept'), (_, name) => {
      const status = statSync(join(folder, 'kept', String(name)), { throwIfNoEntry: false })
      if (status !== undefined) modes.set(String(name), status.mode & 0o777)
    })
    releaseAfterTest(() => watcher.close())
    const { exitCode } = await keep('1')
    assert.equal(exitCode, 0)
    assert.ok([...modes.keys()].some((name) => name.endsWith('-plain')))
    assert.deepEqual([...new Set(modes.values())], [0o600])
  })

  it('keeps the newest ones, and removes the rest', async () => {
    const { put, keep, list } = await newStore()
    put(...older)
    const { stderr } = await keep('3')
    assert.match(stderr, /^Backed up: .*\nRemoved: 2 older backups\.\n$/)
    const [third, fourth, made = '', ...more] = list()
    assert.deepEqual([third, fourth, more], [older[2], older[3], []])
    assert.match(made, own)
    assert.equal((await keep('1', '--quiet')).stderr, '')
    assert.equal(list().length, 1)
    assert.notEqual(list()[0], made)
  })

  it('keeps the one that it has just made, though the clock was set back', async () => {
    const { put, keep, list } = await newStore()
    put(newer)
    await keep('1')
    const [name = '', ...more] = list()
    assert.match(name, own)
    assert.notEqual(name, newer)
    assert.deepEqual(more, [])
  })

  it('touches nothing that it has not made', async () => {
    const { folder, put, keep, list } = await newStore()
    const foreign = [
      'plants.csv',
      'other-2020-01-01T00-00-00-000Z.db.gz',
      'plant-store-2020-01-01.db.gz',
      `${older[0]}.part-0123456789ab`,
      `copy-of-${older[0]}`,
    ]
    put(...foreign)
    mkdirSync(join(folder, 'kept', older[1] ?? ''))
    await keep('1')
    const left = list().filter((name) => name === older[1] || !own.test(name))
    assert.deepEqual(left, [...foreign, older[1]].sort())
  })

  it('removes nothing when the backup fails', async () => {
    const { folder, put, keep, list } = await newStore()
    put(...older)
    writeFileSync(join(folder, 'plant-store.db'), 'not a database, and long enough to be looked at')
    const { exitCode } = await keep('1')
    assert.equal(exitCode, 78)
    assert.deepEqual(list(), older)
  })

  const wrong: [what: string, args: string[], message: RegExp][] = [
    ...['0', '-1', '1.5', '10001', 'all', ''].map((count): [string, string[], RegExp] => [
      `--keep ${count}`,
      ['kept', `--keep=${count}`],
      /^--keep must be a number of backups from 1 to 10000, not ".*"\.\n$/,
    ]),
    [
      'a folder that is not there',
      ['nowhere', '--keep', '3'],
      /^Cannot keep backups in nowhere: there is no such file or folder\.\n$/,
    ],
    [
      'a file',
      ['plant-store.db', '--keep', '3'],
      /^Cannot keep backups in plant-store\.db: it is not a folder\.\n$/,
    ],
    [
      'standard output',
      ['-', '--keep', '3'],
      /^Cannot keep backups in -: there is no such file or folder\.\n$/,
    ],
  ]
  for (const [what, args, message] of wrong) {
    it(`refuses ${what} in one line`, async () => {
      const { folder, put, list } = await newStore()
      put(...older)
      const { exitCode, stderr } = await run(['backup', ...args, '--database', database], {
        folder,
      })
      assert.match(stderr, message)
      assert.equal(exitCode, 78)
      assert.deepEqual(list(), older)
    })
  }

  it('says in one line that it cannot write to the folder', async () => {
    const { folder, keep, list } = await newStore()
    // Another user may not be able to load the code of the command.
    await keep('3')
    for (const name of list()) rmSync(join(folder, 'kept', name))
    chmodSync(folder, 0o755)
    chmodSync(join(folder, 'plant-store.db'), 0o644)
    for (const log of ['-wal', '-shm'])
      rmSync(join(folder, `plant-store.db${log}`), { force: true })
    chmodSync(join(folder, 'kept'), 0o555)
    const { exitCode, stderr } = await withoutRights(() => keep('3'))
    chmodSync(join(folder, 'kept'), 0o755)
    assert.match(stderr, /^Cannot write kept\/plant-store-\S+\.db\.gz: permission denied\.\n$/)
    assert.equal(exitCode, 73)
    assert.deepEqual(list(), [])
  })
})
