import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { type Run, run, runProcess, start } from '../support/command.ts'
import { engines, postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { openProxy } from '../support/proxy.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { countPlants } from './lab/plant-count.ts'
import { scale } from './lab/scale.ts'
import { startProcess, token } from './lab/service-process.ts'
import { compileShim, newQuickFolder } from './lab/shim.ts'

const lineCount = scale(3_000, 12_000)
/** Half of the lines repeat ids with other names: the order of the lines decides. */
const lines = Array.from({ length: lineCount }, (_, line) => {
  const id = line % 2 === 0 ? line : -(line % (lineCount / 4))
  return `{"id":${id},"name":"plant ${line}"}\n`
})
const flags = ['--on-conflict', 'replace', '--quiet']

/** A folder with the file, and what a store holds after the file was imported, on any engine. */
const folder = newFolder()
writeFileSync(join(folder, 'plants.ndjson'), lines.join(''))
const expected = await importInto(`sqlite:${join(folder, 'expected.db')}`)

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

const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/x-ndjson' }

/** Sends the file to a service. Returns the status of the answer; undefined if none has come. */
async function send(url: string): Promise<number | undefined> {
  const request = { method: 'POST', headers, body: lines.join('') }
  const path = '/plants.ndjson?on-conflict=replace'
  const answer = await fetch(`${url}${path}`, request).catch(() => undefined)
  await answer?.text().catch(() => {})
  return answer?.status
}

for (const engine of engines) {
  /** A new store, and whether it has a random number of plants, of which there will be more. */
  async function prepare() {
    const url = await engine.newUrl()
    const store = await engine.open(url)
    const enough = 1 + Math.floor(Math.random() * 0.4 * lineCount)
    return { url, store, isEnough: async () => (await countPlants(store)) >= enough }
  }

  it(`an import into ${engine.name} that is killed ends with the same store when it is run again`, async () => {
    for (let round = 0; round < scale(1, 20); round++) {
      const { url, store, isEnough } = await prepare()
      const running = await startUntil(isEnough, url)
      running.child.kill('SIGKILL')
      assert.equal((await running.ended).exitCode, 137)
      await store.close()
      assert.ok((await importInto(url)) === expected, 'the stores differ')
    }
  })

  it(`an import over HTTP ends with the same store when the service is killed, on ${engine.name}`, async () => {
    for (let round = 0; round < scale(1, 20); round++) {
      const { url, store, isEnough } = await prepare()
      const service = await startProcess({ database: url })
      const sending = send(service.url)
      await waitUntil(isEnough, 'enough plants')
      await store.close()
      await service.end('SIGKILL')
      await sending
      const again = await startProcess({ database: url, port: Number(new URL(service.url).port) })
      assert.equal(await send(again.url), 200)
      await again.end('SIGTERM')
      assert.ok((await read(url)) === expected, 'the stores differ')
    }
  })
}

/** Runs the import to its end, and answers everything that is stored then. */
async function importInto(url: string): Promise<string> {
  const options = { folder, env: { DATABASE_URL: url } }
  const imported = await run(['import', 'plants.ndjson', ...flags], options)
  assert.equal(imported.exitCode, 0, imported.stderr)
  return read(url)
}

/** Everything that is stored. */
async function read(url: string): Promise<string> {
  return (await run(['export', '--quiet'], { folder, env: { DATABASE_URL: url } })).stdout
}

const longCount = 30_000
const longLines = Array.from(
  { length: longCount },
  (_, id) => `{"id":${id},"name":"plant ${id}"}\n`,
)
const shim = compileShim()

/** The report of an import: how many plants it stored, and how many of the rest it may have. */
function readReport({ stderr }: Run): { stored: number; perhaps: number } {
  const stored = /^Imported so far into \S+: ([\d,]+) stored/m.exec(stderr)?.[1]
  assert.ok(stored !== undefined, stderr)
  const perhaps = stderr
    .matchAll(/Lines? (\d+)(?: to (\d+))? may or may not be stored/g)
    .reduce((sum, [, first, last = first]) => sum + Number(last) - Number(first) + 1, 0)
  return { stored: Number(stored.replaceAll(',', '')), perhaps }
}

async function requireTrue(ended: Run, store: Store): Promise<void> {
  const { stored, perhaps } = readReport(ended)
  const count = await countPlants(store)
  assert.ok(stored > 0, ended.stderr)
  assert.ok(count >= stored && count <= stored + perhaps, `${count} are there. ${ended.stderr}`)
}

describe('the report of an import is true when it is ended by', () => {
  it('a full disk', { skip: shim.skip }, async () => {
    const folder = newQuickFolder()
    writeFileSync(join(folder, 'plants.ndjson'), longLines.join(''))
    const fault = {
      kind: 'write',
      number: 400,
      error: 'ENOSPC',
      times: 'on',
      suffix: '-wal',
    } as const
    const ended = await runProcess(['import', 'plants.ndjson', '--create'], {
      folder,
      env: { DATABASE_URL: 'sqlite:plants.db', ...shim.toEnv?.({ folder, fault }) },
    })
    assert.match(ended.stderr, /^The disk is full\. Lines \d+ to \d+ were not stored\./m)
    assert.equal(ended.exitCode, 74)
    await requireTrue(ended, openSqliteStore(join(folder, 'plants.db')))
    assert.equal(readReport(ended).perhaps, 0)
  })

  it('a store that is lost', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const { hostname, port } = new URL(url)
    const proxy = await openProxy(hostname, Number(port))
    const half = longCount / 2
    const running = start(['import', '-', '--format', 'ndjson'], {
      folder: newFolder(),
      env: { DATABASE_URL: proxy.toUrl(url) },
      input: longLines.slice(0, half).join(''),
      isInputOpen: true,
    })
    await waitUntil(async () => (await countPlants(store)) > half / 2, 'some plants')
    await proxy.cut()
    running.child.stdin?.end(longLines.slice(half).join(''))
    const ended = await running.ended
    assert.equal(ended.exitCode, 74)
    await requireTrue(ended, store)
  })
})
