import assert from 'node:assert/strict'
import {
  closeSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import type { Verdict } from '../../src/store/finding.ts'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { waitUntil } from '../support/wait.ts'
import { call, type Request } from '../support/wire.ts'
import { startProcess, token } from './lab/service-process.ts'

const disks = [16_384, 16_384].map(mountSmallDisk)
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
    send,
    async serve() {
      const service = await startProcess({ database })
      url = service.url
      return service
    },
    run: (...args: string[]) => run(args, { folder: newFolder(), env: { DATABASE_URL: database } }),
    async create(id: number, text = name): Promise<number> {
      const body = JSON.stringify({ id, name: text })
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
  const findings: (Verdict & { readonly subject: string })[] = JSON.parse(stdout)
  assert.equal(findings.find(({ subject }) => subject === 'integrity')?.state, 'ok', stdout)
}

/** Makes a token, and answers it with its id. */
async function createToken({ run }: Store) {
  const { stdout, stderr } = await run('token', 'create', '--name', 'x', '--json')
  assert.notEqual(stdout, '', stderr)
  return JSON.parse(stdout) as { id: string; token: string }
}

/** Stores plants, at last short ones, until the disk has room for none. Answers their ids. */
async function createAll({ create }: Store, from: number): Promise<number[]> {
  const ids: number[] = []
  let id = from
  for (const text of [name, 'x']) {
    let status = await create(id, text)
    for (; status === 200; status = await create(id, text)) ids.push(id++)
    assert.equal(status, 507)
  }
  return ids
}

/** No command that writes succeeds, and each says why in one sentence. */
async function requireRefusals({ run }: Store, tokenId: string): Promise<void> {
  const file = join(newFolder(), 'plants.ndjson')
  writeFileSync(file, `{"id":999999,"name":"${name}"}\n`)
  for (const args of [
    ['token', 'create', '--name', 'y'],
    ['token', 'revoke', tokenId],
    ['import', file],
  ]) {
    const { exitCode, stderr } = await run(...args)
    assert.match(stderr, /^The disk is full.+\n$/)
    assert.notEqual(exitCode, 0, args.join(' '))
  }
}

async function requirePlants({ send }: Store, ids: readonly number[]): Promise<void> {
  for (const id of ids)
    assert.equal((await send({ path: `/plants/${id}` })).status, 200, String(id))
}

it('a disk that is full serves reads, refuses writes, loses nothing, recovers by its ballast', {
  skip,
}, async () => {
  const { folder = '' } = disks[0] ?? {}
  const ballast = join(folder, 'ballast')
  // Larger than the log, which a checkpoint has to copy into the database.
  writeFileSync(ballast, Buffer.alloc(8 * 1024 * 1024, 1))
  const store = openStoreOn(folder)
  const service = await store.serve()
  const { id, token } = await createToken(store)
  const stored = await createAll(store, 1)
  fill(folder)
  stored.push(...(await createAll(store, 100_000)))
  const put = { method: 'PUT', path: '/plants/1', body: JSON.stringify({ name }) }
  assert.equal((await store.send(put)).status, 507)
  assert.equal(await store.remove(1), 507)
  await requireRefusals(store, id)
  await requireReads(store)
  assert.deepEqual(await store.readiness(), { status: 'ok' })

  await service.end('SIGKILL')
  fill(folder)
  const again = await store.serve()
  await requirePlants(store, stored)
  stored.push(...(await createAll(store, 200_000)))
  await requireReads(store)

  rmSync(ballast)
  for (const plant of stored.slice(0, 20)) assert.equal(await store.remove(plant), 204)
  for (const plant of stored.slice(0, 10)) assert.equal(await store.create(plant), 200)
  assert.equal((await store.run('token', 'revoke', id)).exitCode, 0)
  await waitUntil(async () => {
    const headers = { Authorization: `Bearer ${token}` }
    return (await store.send({ path: '/plants', headers })).status === 401
  }, 'the token is refused')
  await requirePlants(store, [...stored.slice(0, 10), ...stored.slice(20)])
  await again.end('SIGTERM')
  assert.deepEqual(readdirSync(folder).sort(), ['filler', 'plants.db'])
})

it('a disk that was full before ends commands with one line; 64 KiB are enough for reads', {
  skip,
}, async () => {
  const { folder = '' } = disks[1] ?? {}
  const store = openStoreOn(folder)
  const service = await store.serve()
  const { id } = await createToken(store)
  assert.equal(await store.create(1), 200)
  await service.end('SIGTERM')
  fill(folder)
  for (const args of [
    ['serve', '--port', '0'],
    ['export', '-'],
    ['token', 'revoke', id],
  ]) {
    const { exitCode, stderr } = await store.run(...args)
    assert.match(stderr, /^Cannot open the database \S+: the disk is full\.\n$/)
    assert.equal(exitCode, 78)
  }
  const filler = join(folder, 'filler')
  truncateSync(filler, statSync(filler).size - 64 * 1024)
  await requireReads(store)
  await store.serve()
  await createAll(store, 2)
  assert.equal((await store.send({ path: '/plants/1' })).status, 200)
  rmSync(filler)
  assert.equal(await store.create(1_000), 200)
})
