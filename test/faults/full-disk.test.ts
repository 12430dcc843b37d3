import assert from 'node:assert/strict'
import {
  closeSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import type { Finding } from '../../src/store/finding.ts'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { waitUntil } from '../support/wait.ts'
import { call, type Request } from '../support/wire.ts'
import { startProcess, token } from './lab/service-process.ts'

const disks = [16_384, 16_384, 6_144, 16_384, 16_384].map(mountSmallDisk)
const skip = disks.map((disk) => disk.skip).find(Boolean) ?? false

/** Takes every byte that is left on a disk. */
function fill(folder: string): void {
  const file = openSync(join(folder, 'filler'), 'a')
  for (let bytes = 1024 * 1024; bytes >= 1; ) {
    try {
      writeSync(file, Buffer.alloc(bytes, 1))
    } catch {
      bytes = Math.floor(bytes / 4)
    }
  }
  closeSync(file)
  assert.equal(statfsSync(folder).bfree, 0)
}

const name = 'x'.repeat(8_000)

/** A service on a disk, and its commands. */
function openStoreOn(folder: string, file = 'plants.db') {
  const path = join(folder, file)
  const database = `sqlite:${path}`
  let url = ''
  const send = (request: Request) =>
    call(url, {
      ...request,
      headers: {
        Authorization: `Bearer ${token}`,
        ...(request.body !== undefined && { 'Content-Type': 'application/json' }),
        ...request.headers,
      },
    })
  return {
    path,
    reserve: `${path}-reserve`,
    reserveBytes: () => statSync(`${path}-reserve`, { throwIfNoEntry: false })?.size ?? 0,
    send,
    async serve(env: Record<string, string> = {}) {
      const service = await startProcess({ database, env })
      url = service.url
      return service
    },
    run: (...args: string[]) => run(args, { folder: newFolder(), env: { DATABASE_URL: database } }),
    async create(id: number): Promise<number> {
      const body = JSON.stringify({ id, name })
      return (await send({ method: 'POST', path: '/plants', body })).status
    },
    async remove(id: number): Promise<number> {
      return (await send({ method: 'DELETE', path: `/plants/${id}` })).status
    },
    async readiness() {
      return JSON.parse((await send({ path: '/readyz' })).body)
    },
  }
}

type Store = ReturnType<typeof openStoreOn>

/** Every command that only reads works, whether a service runs or not. */
async function requireReads({ run }: Store): Promise<void> {
  for (const args of [['export', '-'], ['token', 'list'], ['log'], ['webhook', 'list']]) {
    const { exitCode, stdout, stderr } = await run(...args)
    assert.equal(exitCode, 0, `${args.join(' ')}: ${stderr}`)
    if (args[0] !== 'webhook') assert.notEqual(stdout, '', args.join(' '))
  }
  const backup = await run('backup', 'on-another-disk.db')
  assert.equal(backup.exitCode, 0, backup.stderr)
  const { stdout } = await run('check', '--json')
  const findings: Finding[] = JSON.parse(stdout)
  assert.equal(findings.find(({ subject }) => subject === 'integrity')?.state, 'ok', stdout)
}

/** Makes a token, and answers it with its id. */
async function createToken({ run }: Store) {
  const { stdout, stderr } = await run('token', 'create', '--name', 'x', '--json')
  assert.notEqual(stdout, '', stderr)
  return JSON.parse(stdout) as { id: string; token: string }
}

describe('a disk that another program has filled', { skip }, () => {
  it('refuses writes, and lets reads, deletes and revocations through', async () => {
    const { folder } = disks[0] as { folder: string }
    const store = openStoreOn(folder)
    const service = await store.serve()
    const tokens = [await createToken(store), await createToken(store)] as const
    for (let id = 1; id <= 100; id++) assert.equal(await store.create(id), 200)
    await waitUntil(() => store.reserveBytes() > 1_000_000, 'there is a reserve')
    fill(folder)

    for (let id = 1_000; (await store.create(id)) === 200; id++);
    assert.equal(await store.create(5_000), 507)
    await requireReads(store)
    for (let id = 1; id <= 20; id++) assert.equal(await store.remove(id), 204)
    assert.deepEqual(await store.readiness(), { status: 'ok', writes: 'disk full' })
    const [first, second] = tokens
    const revoked = await store.run('token', 'revoke', first.id)
    assert.equal(revoked.exitCode, 0, revoked.stderr)
    await waitUntil(async () => {
      const headers = { Authorization: `Bearer ${first.token}` }
      return (await store.send({ path: '/plants', headers })).status === 401
    }, 'the token is refused')

    // The end of the service frees space, which the other program takes as well.
    await service.end('SIGTERM')
    fill(folder)
    await requireReads(store)
    const later = await store.run('token', 'revoke', second.id)
    assert.equal(later.exitCode, 0, later.stderr)

    const again = await store.serve()
    assert.equal((await store.send({ path: '/plants/50' })).status, 200)
    for (let id = 6_000; (await store.create(id)) === 200; id++);
    assert.equal(await store.create(5_000), 507)
    assert.equal(await store.remove(21), 204)
    await again.end('SIGKILL')
    fill(folder)

    // After a crash, and with the setting that makes room.
    const last = await store.serve({ JOURNAL_KEEP: 'off' })
    assert.equal((await store.send({ path: '/plants/50' })).status, 200)
    assert.equal((await store.send({ path: '/plants/21' })).status, 404)
    assert.equal((await store.send({ path: '/events' })).status, 404)
    assert.equal(await store.remove(22), 204)
    rmSync(join(folder, 'filler'))
    assert.equal(await store.create(7_000), 200)
    assert.deepEqual(await store.readiness(), { status: 'ok' })
    await last.end('SIGTERM')
    assert.deepEqual(readdirSync(folder).sort(), ['plants.db', 'plants.db-reserve'])
  })
})

describe('a disk that is full before anything starts', { skip }, () => {
  it('is enough for reads, deletes and revocations, with the reserve', async () => {
    const { folder } = disks[3] as { folder: string }
    const store = openStoreOn(folder)
    const service = await store.serve()
    const { id } = await createToken(store)
    for (let plant = 1; plant <= 10; plant++) assert.equal(await store.create(plant), 200)
    await waitUntil(() => store.reserveBytes() > 1_000_000, 'there is a reserve')
    await service.end('SIGTERM')
    fill(folder)
    const made = await store.run('token', 'create', '--name', 'y')
    assert.equal(
      made.stderr,
      'The disk is full and nothing was stored. Plants can still be read.\n',
    )
    assert.equal(made.exitCode, 74)
    await requireReads(store)
    const link = join(newFolder(), 'link.db')
    symlinkSync(store.path, link)
    await requireReads(openStoreOn(dirname(link), 'link.db'))
    fill(folder)
    await store.serve()
    assert.equal((await store.send({ path: '/plants/5' })).status, 200)
    assert.equal(await store.create(20), 507)
    assert.equal(await store.remove(1), 204)
    const revoked = await store.run('token', 'revoke', id)
    assert.equal(revoked.exitCode, 0, revoked.stderr)
  })

  it('is enough for reads without the reserve, if 64 KiB are free', async () => {
    const { folder } = disks[4] as { folder: string }
    const store = openStoreOn(folder)
    const service = await store.serve()
    await createToken(store)
    assert.equal(await store.create(1), 200)
    await waitUntil(() => store.reserveBytes() > 1_000_000, 'there is a reserve')
    await service.end('SIGTERM')
    rmSync(store.reserve)
    fill(folder)
    const refused = await store.run('export', '-')
    assert.match(refused.stderr, /^Cannot open the database \S+: the disk is full\.\n$/)
    assert.equal(refused.exitCode, 78)
    const filler = join(folder, 'filler')
    truncateSync(filler, statSync(filler).size - 64 * 1024)
    await requireReads(store)
    // There is no room to prove that commits are synced, so nothing is committed.
    await store.serve()
    assert.equal((await store.send({ path: '/plants/1' })).status, 200)
    assert.equal(await store.create(2), 507)
    assert.equal(await store.remove(1), 507)
    rmSync(filler)
    assert.equal(await store.create(2), 200)
  })
})

describe('a disk that the store itself has filled', { skip }, () => {
  for (const [index, size] of [16, 6].entries()) {
    it(`takes deletes, revocations, and creates in their place: ${size} MiB`, async (test) => {
      const { folder } = disks[index + 1] as { folder: string }
      const store = openStoreOn(folder)
      const service = await store.serve({ JOURNAL_KEEP: '1h' })
      const { id } = await createToken(store)
      await waitUntil(() => store.reserveBytes() > 0, 'there is a reserve')
      let count = 0
      const createSome = () => Promise.all(Array.from({ length: 20 }, () => store.create(++count)))
      while ((await createSome()).every((status) => status === 200));
      while ((await store.create(++count)) === 200);
      fill(folder)
      let removed = 0
      while (removed < 100 && (await store.remove(removed + 1)) === 204) removed++
      assert.equal((await store.run('token', 'revoke', id)).exitCode, 0)
      test.diagnostic(JSON.stringify({ count, removed, reserve: store.reserveBytes() }))
      await requireReads(store)
      assert.ok(removed >= 10)
      await service.end('SIGKILL')
      fill(folder)
      await requireReads(store)
      const again = await store.serve({ JOURNAL_KEEP: 'off' })
      assert.equal((await store.send({ path: `/plants/${removed + 1}` })).status, 200)
      test.diagnostic(`a create after the journal is gone: ${await store.create(count + 100)}`)
      await again.end('SIGTERM')
    })
  }
})
