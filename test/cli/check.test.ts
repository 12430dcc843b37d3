import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { applicationId } from '../../src/store/sqlite/file.ts'
import { upgrade } from '../../src/store/sqlite/migrations.ts'
import { run, runProcess } from '../support/command.ts'
import { type Engine, engines, postgres, sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { newCluster, query, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { ends, endsWith } from './ends.ts'

/** What the command says about each subject, and what it finds to do. */
async function check(url: string) {
  const options = { folder: newFolder(), env: { DATABASE_URL: url } }
  const { stdout, exitCode } = await run(['check', '--json'], options)
  const findings: { subject: string; state: string; message: string }[] = JSON.parse(stdout)
  const toDo = findings.filter(({ state }) => state === 'to do')
  const about = (subject: string) => toDo.find((one) => one.subject === subject)?.message
  const subjects = toDo.map(({ subject }) => subject)
  assert.equal(exitCode, toDo.length === 0 ? 0 : 1)
  return { findings, subjects, about }
}

async function newStore(engine: Engine): Promise<string> {
  const url = await engine.newUrl()
  const store = await engine.open(url)
  await store.createPlant({ id: 1n, name: 'Fern' })
  await store.close()
  return url
}

for (const engine of engines) {
  describe(`plant-store check on ${engine.name}`, () => {
    it('ends with 0 on a good store, while it is in use, and changes nothing', async () => {
      const url = await newStore(engine)
      const store = await engine.open(url)
      const { findings, subjects } = await check(url)
      // The servers of the tests do without fsync.
      assert.deepEqual(subjects, engine === sqlite ? [] : ['syncs'])
      assert.ok(findings.length >= 7)
      assert.equal((await store.getPlant(1n))?.name, 'Fern')
    })

    it('names tokens that will expire soon', async () => {
      const url = await newStore(engine)
      const options = { folder: newFolder(), env: { DATABASE_URL: url } }
      await ends('token create --name billing --expires 3d', 0, /./, options)
      await ends('token create --name later --expires 90d', 0, /./, options)
      const { about } = await check(url)
      assert.match(about('tokens') ?? '', /^"billing" will expire within 14 days: /)
    })
  })
}

const toPath = (url: string) => url.replace('sqlite:', '')

/** Empties a file, and makes it a store of another release. */
function makeRelease(path: string, version: number): void {
  writeFileSync(path, '')
  using db = new DatabaseSync(path)
  upgrade(db, 0)
  db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`)
}

const edit = (change: (bytes: Buffer) => Buffer | string) => (path: string) =>
  writeFileSync(path, change(readFileSync(path)))
const release = (version: number) => (path: string) => makeRelease(path, version)

/** Adds a token that was made an hour from now. */
function setClockBack(path: string): void {
  using db = new DatabaseSync(path)
  db.exec(`INSERT INTO tokens (id, hash, name, scopes, created_at)
    VALUES ('a', x'00', 'a', '', ${Date.now() + 3_600_000})`)
}

/** What was done to a file, and what is found about which subject. */
const spoiled: [what: string, spoil: (path: string) => void, subject: string, said: RegExp][] = [
  [
    'a damaged page',
    edit((bytes) => bytes.fill(0xab, bytes.length - 4_096)),
    'integrity',
    /restore/,
  ],
  ['a half-copied file', edit((bytes) => bytes.subarray(0, 6_000)), 'integrity', /restore/],
  ['a file of others', edit(() => 'notes'), 'file', /is not a database of Plant Store/],
  ['files that others can read', (path) => chmodSync(path, 0o644), 'permissions', /chmod 600/],
  ['a newer schema', release(99), 'schema', /use the newer program/],
  ['an older schema', release(9), 'schema', /make a backup; the next "serve"/],
  ['no schema', release(0), 'schema', /no store was made yet/],
  ['a clock that is behind the store', setClockBack, 'clock', /./],
]

describe('plant-store check on a file', () => {
  for (const [what, spoil, subject, said] of spoiled) {
    it(`finds ${what}`, async () => {
      const url = await newStore(sqlite)
      spoil(toPath(url))
      const { subjects, about } = await check(url)
      assert.match(about(subject) ?? '', said, `${subjects}`)
    })
  }

  it('finds a named pipe, without waiting for its other end', { timeout: 60_000 }, async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'plants.db')])
    const isPipe = /Cannot open .*plants\.db: it is not a regular file\.\n$/
    for (const [args, code, said] of [
      [['check'], 1, ''],
      [['backup', 'b.db'], 78, isPipe],
    ] as const) {
      const command = [...args, '--database', 'sqlite:plants.db']
      const stdout = await endsWith(runProcess(command, { folder }), code, said)
      if (code === 1) assert.match(stdout, isPipe)
    }
  })

  it('examines the files beside the store, though a link leads to it', async () => {
    const url = await newStore(sqlite)
    const store = await sqlite.open(url)
    await store.createPlant({ id: 2n, name: 'x'.repeat(200_000) })
    chmodSync(`${toPath(url)}-wal`, 0o644)
    const link = join(newFolder(), 'link.db')
    symlinkSync(toPath(url), link)
    const { about, findings } = await check(`sqlite:${link}`)
    assert.match(about('permissions') ?? '', /chmod 600 \S+-wal$/)
    assert.notEqual(findings.find(({ subject }) => subject === 'log')?.message, '0.0 MiB')
  })
})

describe('plant-store check on a server', () => {
  it('finds a schema of a newer release', async () => {
    const url = await newStore(postgres)
    await query(url, 'UPDATE plant_store.schema_version SET version = 99')
    const { about } = await check(url)
    assert.match(about('schema') ?? '', /use the newer program that wrote it$/)
  })

  it('finds settings that lose plants', async () => {
    const { about } = await check(await newStore(postgres))
    assert.match(about('syncs') ?? '', /fsync off: a crash loses plants/)
  })

  it('finds a journal that was moved without its sequence, and leaves it so', async () => {
    const url = await newStore(postgres)
    await query(url, "SELECT setval('plant_store.journal_seq', 1)")
    for (const { about } of [await check(url), await check(url)]) {
      assert.match(about('journal') ?? '', /^its sequence is behind, as after logical replication/)
    }
    await (await postgres.open(url)).close()
    assert.equal((await check(url)).about('journal'), undefined)
  })

  it('counts connections, and not the processes of the server itself', async () => {
    const server = await startServer(await newCluster(), { autovacuum: 'off' })
    releaseAfterTest(server.stop)
    // A server without TLS ends a connection that asks for it, but perhaps a moment later.
    const { findings } = await check(`${server.toUrl('postgres')}?sslmode=disable`)
    const found = findings.find(({ subject }) => subject === 'connections')
    // One that watches the server, one for chores, and two for writes.
    assert.equal(found?.message, '4 of 400 are in use')
  })
})
