import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { runProcess } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { compileShim } from './lab/shim.ts'
import { readTrace } from './lab/trace.ts'

const shim = compileShim()

describe('a restore', { skip: shim.skip }, () => {
  it('syncs the parents of the folders that it makes', async () => {
    const backup = join(newFolder(), 'backup.db')
    openConnection(backup).close()
    const folder = newFolder()
    const trace = join(newFolder(), 'trace')
    const { exitCode, stderr } = await runProcess(['restore', backup], {
      folder,
      env: {
        DATABASE_URL: `sqlite:${folder}/a/b/plants.db`,
        ...shim.toEnv?.({ folder, trace }),
      },
    })
    assert.equal(exitCode, 0, stderr)
    const operations = readTrace(trace)
    for (const [made, parent] of [
      [join(folder, 'a'), folder],
      [join(folder, 'a', 'b'), join(folder, 'a')],
    ]) {
      const madeAt = operations.findIndex(
        ({ kind, path }) => kind === 'make folder' && path === made,
      )
      assert.notEqual(madeAt, -1)
      const later = operations.slice(madeAt)
      assert.ok(later.some(({ kind, path }) => kind === 'sync' && path === parent))
    }
  })
})
