import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { run, start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { operatorToken } from '../support/service.ts'
import { scale } from './scale.ts'
import { startWriters } from './writers.ts'

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

for (const engine of engines) {
  describe(`an import into ${engine.name} that is killed`, () => {
    it('ends with the same store when the same command is run again', async (t) => {
      const rounds = scale(2, 20)
      const count = 60_000
      const folder = newFolder()
      // The same ids again and again, with other contents: which of them stays is decided by their order.
      const lines = Array.from({ length: count }, (_, line) => {
        const id = line % 3 === 0 ? line : count - line
        return `{"id":${id},"name":"plant ${line}"}\n`
      })
      writeFileSync(join(folder, 'plants.ndjson'), lines.join(''))
      const flags = ['--on-conflict', 'replace', '--quiet']
      const startedAt = performance.now()
      const expected = await importInto(await engine.newUrl(), folder, flags)
      const wholeMs = performance.now() - startedAt
      let cutShort = 0
      for (let round = 0; round < rounds; round++) {
        const env = { DATABASE_URL: await engine.newUrl() }
        const running = start(['import', 'plants.ndjson', ...flags], { folder, env })
        await pause(Math.random() * wholeMs * 0.6)
        running.child.kill('SIGKILL')
        const { exitCode } = await running.ended
        if (exitCode === null) cutShort++
        assert.ok((await importInto(env.DATABASE_URL, folder, flags)) === expected)
      }
      t.diagnostic(`${cutShort} of ${rounds} imports were cut short`)
      assert.ok(cutShort > 0)
    })
  })
}

/** Runs the import to its end and answers everything that is stored then. */
async function importInto(url: string, folder: string, flags: string[]): Promise<string> {
  const env = { DATABASE_URL: url }
  const imported = await run(['import', 'plants.ndjson', ...flags], { folder, env })
  assert.equal(imported.exitCode, 0, imported.stderr)
  return (await run(['export', '--quiet'], { folder, env })).stdout
}

describe('a backup under load', () => {
  it('holds every plant that was acknowledged before it began, and restores', async (t) => {
    const rounds = scale(2, 20)
    const folder = newFolder()
    const env = { PORT: '0', PLANT_STORE_TOKEN: operatorToken }
    const service = start(['serve'], { folder, env })
    const [, url = ''] = await service.waitFor(/address {3}(http:\S+)/)
    const writers = startWriters(url, operatorToken, 8)
    let checked = 0
    for (let round = 0; round < rounds; round++) {
      await pause(100)
      const before = writers.attempts.filter(({ outcome }) => outcome === 'ok')
      const backup = await run(['backup', `${round}.db`], { folder })
      assert.equal(backup.exitCode, 0, backup.stderr)
      const place = `sqlite:restored-${round}.db`
      const restored = await run(['restore', `${round}.db`, '--database', place], { folder })
      assert.equal(restored.exitCode, 0, restored.stderr)
      const db = new DatabaseSync(join(folder, `restored-${round}.db`))
      assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
      const find = db.prepare('SELECT name FROM plants WHERE id = ?')
      const lost = before.filter(({ id, name }) => find.get(id)?.name !== name)
      db.close()
      assert.deepEqual(lost, [])
      checked += before.length
    }
    await writers.stop()
    assert.ok(checked > 0)
    t.diagnostic(`${rounds} backups, ${checked} acknowledged plants looked up`)
  })
})
