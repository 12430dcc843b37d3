import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, openSync, readFileSync, symlinkSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { applicationId } from '../../src/store/sqlite/file.ts'
import { runMigrations } from '../../src/store/sqlite/migrations.ts'
import { run, runProcess } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { newCluster, query, startServer } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'

const [sqlite, postgresql] = engines as [(typeof engines)[number], (typeof engines)[number]]

/** The subjects that the command finds something to do about, with its exit code. */
async function check(url: string) {
  const { stdout, exitCode } = await run(['check', '--json'], {
    folder: newFolder(),
    env: { DATABASE_URL: url },
  })
  const findings: { subject: string; state: string; message: string }[] = JSON.parse(stdout)
  const toDo = findings.filter(({ state }) => state === 'to do')
  return { toDo, findings, exitCode }
}

async function newStore(engine: (typeof engines)[number]): Promise<string> {
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
      const { findings, toDo, exitCode } = await check(url)
      // The servers of the tests do without fsync.
      assert.deepEqual(
        toDo.filter(({ subject }) => subject !== 'syncs' || engine === sqlite),
        [],
      )
      assert.equal(exitCode, toDo.length === 0 ? 0 : 1)
      assert.ok(findings.length >= 7)
      assert.equal((await store.getPlant(1n))?.name, 'Fern')
    })

    it('names tokens that will expire soon', async () => {
      const url = await newStore(engine)
      const options = { folder: newFolder(), env: { DATABASE_URL: url } }
      await run(['token', 'create', '--name', 'billing', '--expires', '3d'], options)
      await run(['token', 'create', '--name', 'later', '--expires', '90d'], options)
      const { toDo, exitCode } = await check(url)
      const tokens = toDo.find(({ subject }) => subject === 'tokens')
      assert.match(tokens?.message ?? '', /^"billing" will expire within 14 days: /)
      assert.equal(exitCode, 1)
    })
  })
}

describe('plant-store check on a file', () => {
  const toPath = (url: string) => url.replace('sqlite:', '')

  it('finds a damaged page', async () => {
    const url = await newStore(sqlite)
    const path = toPath(url)
    const size = readFileSync(path).length
    writeSync(openSync(path, 'r+'), Buffer.alloc(4_096, 0xab), 0, 4_096, size - 4_096)
    const { toDo, exitCode } = await check(url)
    assert.match(toDo.find(({ subject }) => subject === 'integrity')?.message ?? '', /restore/)
    assert.equal(exitCode, 1)
  })

  it('finds a half-copied file', async () => {
    const url = await newStore(sqlite)
    const path = toPath(url)
    writeFileSync(path, readFileSync(path).subarray(0, 6_000))
    const { toDo, exitCode } = await check(url)
    assert.notDeepEqual(toDo, [])
    assert.equal(exitCode, 1)
  })

  it('finds a file that is not a store', async () => {
    const path = join(newFolder(), 'notes.txt')
    writeFileSync(path, 'notes')
    const { toDo } = await check(`sqlite:${path}`)
    assert.match(toDo[0]?.message ?? '', /is not a database of Plant Store/)
  })

  it('finds a named pipe, without waiting for its other end', { timeout: 60_000 }, async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'plants.db')])
    for (const [args, code] of [
      [['check'], 1],
      [['backup', 'b.db'], 78],
    ] as const) {
      const command = [...args, '--database', 'sqlite:plants.db']
      const { exitCode, stdout, stderr } = await runProcess(command, { folder })
      assert.match(stdout + stderr, /Cannot open .*plants\.db: it is not a regular file\.\n$/)
      assert.equal(exitCode, code)
    }
  })

  it('finds files that others can read', async () => {
    const url = await newStore(sqlite)
    chmodSync(toPath(url), 0o644)
    const { toDo } = await check(url)
    assert.deepEqual(
      toDo.map(({ subject }) => subject),
      ['permissions'],
    )
    assert.match(toDo[0]?.message ?? '', /chmod 600/)
  })

  it('examines the files beside the store, though a link leads to it', async () => {
    const url = await newStore(sqlite)
    const store = await sqlite.open(url)
    await store.createPlant({ id: 2n, name: 'x'.repeat(200_000) })
    chmodSync(`${toPath(url)}-wal`, 0o644)
    const link = join(newFolder(), 'link.db')
    symlinkSync(toPath(url), link)
    const { toDo, findings } = await check(`sqlite:${link}`)
    assert.match(toDo[0]?.message ?? '', /chmod 600 \S+-wal$/)
    assert.notEqual(findings.find(({ subject }) => subject === 'log')?.message, '0.0 MiB')
  })

  for (const [version, pattern] of [
    [99, /use the newer program/],
    [3, /make a backup; the next "serve"/],
    [0, /no store was made yet/],
  ] as const) {
    it(`compares the schema of release ${version} with its own`, async () => {
      const url = await sqlite.newUrl()
      const db = new DatabaseSync(toPath(url))
      db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`)
      runMigrations(db, 0, version)
      db.close()
      chmodSync(toPath(url), 0o600)
      const { toDo } = await check(url)
      assert.deepEqual(
        toDo.map(({ subject }) => subject),
        ['schema'],
      )
      assert.match(toDo[0]?.message ?? '', pattern)
    })
  }

  it('finds a clock that is behind the store', async () => {
    const url = await newStore(sqlite)
    const options = { folder: newFolder(), env: { DATABASE_URL: url } }
    await run(['token', 'create', '--name', 'x'], options)
    const db = new DatabaseSync(toPath(url))
    db.exec(`UPDATE tokens SET created_at = ${Date.now() + 3_600_000}`)
    db.close()
    const { toDo } = await check(url)
    assert.deepEqual(
      toDo.map(({ subject }) => subject),
      ['clock'],
    )
  })

  it('ends with 78 where there is no store', async () => {
    const { exitCode } = await run(['check'], { folder: newFolder() })
    assert.equal(exitCode, 78)
  })
})

describe('plant-store check on a server', () => {
  it('finds a schema of a newer release', async () => {
    const url = await newStore(postgresql)
    await query(url, 'UPDATE plant_store.schema_version SET version = 99')
    const { toDo, exitCode } = await check(url)
    assert.match(toDo.map(({ message }) => message).join(), /written by a newer release/)
    assert.equal(exitCode, 1)
  })

  it('finds settings that lose plants', async () => {
    const url = await newStore(postgresql)
    const { toDo } = await check(url)
    assert.match(toDo.map(({ message }) => message).join(), /fsync off: a crash loses plants/)
  })

  it('finds a journal that was moved without its sequence, and leaves it so', async () => {
    const url = await newStore(postgresql)
    await query(url, "SELECT setval('plant_store.journal_seq', 1)")
    for (const { toDo, exitCode } of [await check(url), await check(url)]) {
      const found = toDo.find(({ subject }) => subject === 'journal')
      assert.match(found?.message ?? '', /^its sequence is behind, as after logical replication/)
      assert.equal(exitCode, 1)
    }
    await (await postgresql.open(url)).close()
    const { toDo } = await check(url)
    assert.equal(
      toDo.find(({ subject }) => subject === 'journal'),
      undefined,
    )
  })

  it('counts connections, and not the processes of the server itself', async () => {
    const server = await startServer(await newCluster(), { autovacuum: 'off' })
    releaseAfterTest(server.stop)
    const { findings } = await check(server.toUrl('postgres'))
    const found = findings.find(({ subject }) => subject === 'connections')
    assert.equal(found?.message, '3 of 200 are in use')
  })

  it('finds a database without a store, and makes none', async () => {
    const url = await postgresql.newUrl()
    const { toDo } = await check(url)
    assert.match(toDo.map(({ message }) => message).join(), /no store was made here yet/)
    const again = await check(url)
    assert.deepEqual(again.toDo, toDo)
  })
})
