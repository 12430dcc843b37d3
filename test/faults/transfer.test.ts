import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, it } from 'node:test'
import { run, runProcess, start } from '../support/command.ts'
import { engines, sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { waitUntil } from '../support/wait.ts'
import { countPlants } from './lab/plant-count.ts'
import { isLong, scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'
import { startWriters } from './lab/writers.ts'

const lineCount = scale(3_000, 12_000)
/** Half of the lines repeat ids with other names: the order of the lines decides. */
const lines = Array.from({ length: lineCount }, (_, line) => {
  const id = line % 2 === 0 ? line : -(line % (lineCount / 4))
  return `{"id":${id},"name":"plant ${line}"}\n`
})
const flags = ['--on-conflict', 'replace', '--quiet']

/** A folder with the file, and what a store holds after the file was imported, on any engine. */
let folder: string
let expected: string
before(async () => {
  folder = newFolder()
  writeFileSync(join(folder, 'plants.ndjson'), lines.join(''))
  expected = await importInto(`sqlite:${join(folder, 'expected.db')}`)
})

/** Starts an import that waits for its last line. On a busy machine it may give up before. */
async function startUntil(isEnough: () => Promise<boolean>, url: string) {
  for (;;) {
    const running = start(['import', '-', '--format', 'ndjson', ...flags], {
      folder,
      env: { DATABASE_URL: url },
      input: lines.slice(0, -1).join(''),
      isInputOpen: true,
    })
    const hasEnded = () => running.child.exitCode !== null
    await waitUntil(async () => hasEnded() || (await isEnough()), 'enough plants')
    if (!hasEnded()) return running
  }
}

for (const engine of engines) {
  describe(`an import into ${engine.name} that is killed`, () => {
    it('ends with the same store when the same command is run again', async () => {
      for (let round = 0; round < scale(1, 20); round++) {
        const url = await engine.newUrl()
        const store = await engine.open(url)
        const enough = 1 + Math.floor(Math.random() * 0.4 * lineCount)
        const running = await startUntil(async () => (await countPlants(store)) >= enough, url)
        running.child.kill('SIGKILL')
        assert.equal((await running.ended).exitCode, null)
        await store.close()
        assert.ok((await importInto(url)) === expected, 'the stores differ')
      }
    })
  })
}

for (const engine of engines) {
  describe(`an import into a service on ${engine.name}`, () => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/x-ndjson' }

    /** Sends the file. Returns the status of the answer; undefined if none has come. */
    async function send(url: string, signal?: AbortSignal): Promise<number | undefined> {
      const request = { method: 'POST', headers, body: lines.join(''), signal: signal ?? null }
      const path = '/plants.ndjson?on-conflict=replace'
      const answer = await fetch(`${url}${path}`, request).catch(() => undefined)
      await answer?.text().catch(() => {})
      return answer?.status
    }

    /** Starts a service and an import into it, and waits for a random number of plants. */
    async function begin() {
      const database = await engine.newUrl()
      const service = await startProcess({ database })
      const leaving = new AbortController()
      const sending = send(service.url, leaving.signal)
      const store = await engine.open(database)
      const enough = 1 + Math.floor(Math.random() * 0.4 * lineCount)
      await waitUntil(async () => (await countPlants(store)) >= enough, `${enough} plants`)
      await store.close()
      return { database, service, sending, leaving }
    }

    async function read(database: string): Promise<string> {
      const exported = await run(['export', '--quiet'], { folder, env: { DATABASE_URL: database } })
      return exported.stdout
    }

    it('ends with the same store when the service is killed and the file sent again', async () => {
      for (let round = 0; round < scale(1, 20); round++) {
        const { database, service, sending } = await begin()
        await service.end('SIGKILL')
        await sending
        const again = await startProcess({ database, port: Number(new URL(service.url).port) })
        assert.equal(await send(again.url), 200)
        await again.end('SIGTERM')
        assert.ok((await read(database)) === expected, 'the stores differ')
      }
    })

    const skip = !isLong && engine !== sqlite && 'part of FAULTS=long npm run test:faults'
    it('ends with the same store when the client leaves and sends the file again', {
      skip,
    }, async () => {
      for (let round = 0; round < scale(1, 20); round++) {
        const { database, service, sending, leaving } = await begin()
        leaving.abort()
        await sending
        assert.equal(await send(service.url), 200)
        await service.end('SIGTERM')
        assert.ok((await read(database)) === expected, 'the stores differ')
      }
    })
  })
}

/** Runs the import to its end, and answers everything that is stored then. */
async function importInto(url: string): Promise<string> {
  const env = { DATABASE_URL: url }
  const imported = await run(['import', 'plants.ndjson', ...flags], { folder, env })
  assert.equal(imported.exitCode, 0, imported.stderr)
  return (await run(['export', '--quiet'], { folder, env })).stdout
}

describe('a backup under load', () => {
  it('holds every plant that was acknowledged before it began, and can be restored', async (t) => {
    const rounds = scale(1, 20)
    const folder = newFolder()
    const database = `sqlite:${join(folder, 'plants.db')}`
    const service = await startProcess({ database })
    const writers = startWriters(service.url, token, 8)
    let checked = 0
    for (let round = 0; round < rounds; round++) {
      const enough = writers.count('ok') + 100
      await waitUntil(() => writers.count('ok') >= enough, '100 more acknowledged plants')
      const before = writers.attempts.filter(({ outcome }) => outcome === 'ok')
      const env = { DATABASE_URL: database }
      const backup = await runProcess(['backup', `${round}.db`], { folder, env })
      assert.equal(backup.exitCode, 0, backup.stderr)
      const to = `sqlite:restored-${round}.db`
      const restored = await run(['restore', `${round}.db`, '--database', to], { folder })
      assert.equal(restored.exitCode, 0, restored.stderr)
      using db = new DatabaseSync(join(folder, `restored-${round}.db`))
      assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
      const find = db.prepare('SELECT name FROM plants WHERE id = ?')
      const lost = before.filter(({ id, name }) => find.get(id)?.name !== name)
      assert.deepEqual(lost, [])
      checked += before.length
    }
    t.diagnostic(`${rounds} backups, ${checked} acknowledged plants checked`)
  })
})
