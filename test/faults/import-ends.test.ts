import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { type Run, runProcess, start } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { openProxy } from '../support/proxy.ts'
import { openSqliteStore } from '../support/stores.ts'
import { waitUntil } from '../support/wait.ts'
import { countPlants } from './lab/plant-count.ts'
import { compileShim, newQuickFolder } from './lab/shim.ts'

const lineCount = 30_000
const lines = Array.from({ length: lineCount }, (_, id) => `{"id":${id},"name":"plant ${id}"}\n`)
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
    writeFileSync(join(folder, 'plants.ndjson'), lines.join(''))
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
    const half = lineCount / 2
    const running = start(['import', '-', '--format', 'ndjson'], {
      folder: newFolder(),
      env: { DATABASE_URL: url.replace(`:${port}/`, `:${proxy.port}/`) },
      input: lines.slice(0, half).join(''),
      isInputOpen: true,
    })
    await waitUntil(async () => (await countPlants(store)) > half / 2, 'some plants')
    await proxy.cut()
    running.child.stdin?.end(lines.slice(half).join(''))
    const ended = await running.ended
    assert.equal(ended.exitCode, 74)
    await requireTrue(ended, store)
  })

  it('Ctrl-C', async () => {
    const url = await postgres.newUrl()
    const store = await postgres.open(url)
    const running = start(['import', '-', '--format', 'ndjson'], {
      folder: newFolder(),
      env: { DATABASE_URL: url },
      input: lines.join(''),
      isInputOpen: true,
    })
    await waitUntil(async () => (await countPlants(store)) > 0, 'some plants')
    running.child.kill('SIGINT')
    const ended = await running.ended
    assert.equal(ended.exitCode, 130)
    await requireTrue(ended, store)
    assert.equal(readReport(ended).perhaps, 0)
  })
})
