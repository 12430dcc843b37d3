import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { operatorToken, startService } from './support/service.ts'

const project = join(import.meta.dirname, 'generated-client')
const require = createRequire(join(project, 'package.json'))
const document = join(import.meta.dirname, '..', 'openapi.json')

function run(file: string, args: string[]) {
  return promisify(execFile)(process.execPath, [file, ...args], { cwd: project })
}

describe('a client generated from openapi.json', () => {
  it('compiles, creates a plant and reads it', async () => {
    const generated = ['--output', join(project, 'generated.d.ts')]
    const generator = join(
      dirname(require.resolve('openapi-typescript/package.json')),
      'bin',
      'cli.js',
    )
    await run(generator, [document, ...generated])
    rmSync(join(project, 'dist'), { recursive: true, force: true })
    await run(require.resolve('typescript/bin/tsc'), ['--project', project])
    const service = await startService('sqlite::memory:')
    const { stdout } = await run(join(project, 'dist', 'create-plant.js'), [
      service.url,
      operatorToken,
    ])
    assert.deepEqual(JSON.parse(stdout), {
      name: 'Monstera',
      error: 40900,
      id: 1,
      location: '/plants/1',
    })
  })
})
