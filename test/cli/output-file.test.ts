import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { compileShim } from '../faults/lab/shim.ts'
import { readTrace } from '../faults/lab/trace.ts'
import { run, runProcess } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const shim = compileShim()

describe('a file that export writes', { skip: shim.skip }, () => {
  for (const name of ['plants.csv', 'plants.csv.gz']) {
    it(`is synced before it gets its name, and the folder afterwards: ${name}`, async () => {
      const folder = newFolder()
      const trace = join(newFolder(), 'trace')
      await run(['import', '-', '--format', 'ndjson', '--create'], {
        folder,
        input: '{"id":1,"name":"a"}\n',
      })
      const env = shim.toEnv?.({ folder, trace }) ?? {}
      const { exitCode } = await runProcess(['export', join(folder, name)], { folder, env })
      assert.equal(exitCode, 0)
      const steps = readTrace(trace)
        .filter(({ path }) => path === folder || path.includes('.part-'))
        .map(({ kind, path }) => (path === folder ? `${kind} folder` : kind))
      const last = steps.lastIndexOf('write')
      assert.notEqual(last, -1)
      assert.deepEqual(steps.slice(last, last + 4), ['write', 'sync', 'rename', 'sync folder'])
    })
  }
})
