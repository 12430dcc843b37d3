import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { installPackages } from '../support/packages.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'

const project = join(import.meta.dirname, '..', 'generated-client')
const require = createRequire(join(project, 'package.json'))
const document = join(import.meta.dirname, '..', '..', 'openapi.json')

function run(file: string, args: string[]) {
  return promisify(execFile)(process.execPath, [file, ...args], { cwd: project })
}

describe('clients generated from openapi.json', { timeout: 600_000 }, () => {
  before(async () => {
    await installPackages(project)
    const types = ['--output', join(project, 'generated.d.ts')]
    const typescript = dirname(require.resolve('openapi-typescript/package.json'))
    await run(join(typescript, 'bin', 'cli.js'), [document, ...types])
    const functions = ['--output', join(project, 'generated-orval.ts'), '--client', 'fetch']
    const orval = dirname(require.resolve('orval'))
    await run(join(orval, 'bin', 'orval.js'), ['--input', document, ...functions])
    rmSync(join(project, 'dist'), { recursive: true, force: true })
    await run(require.resolve('typescript/bin/tsc'), ['--project', project])
  })

  async function use(program: string, service: TestService): Promise<unknown> {
    const file = join(project, 'dist', program)
    const { stdout } = await run(file, [service.url, operatorToken])
    return JSON.parse(stdout)
  }

  it('create a plant and read it', async () => {
    const service = await startService('sqlite::memory:')
    assert.deepEqual(await use('create-plant.js', service), {
      name: 'Monstera',
      error: 40900,
      id: 1,
      location: '/plants/1',
    })
  })

  it('have lists that are arrays of plants, by openapi-fetch and by orval', async () => {
    const service = await startService('sqlite::memory:')
    for (const id of [3, 1, 2]) await service.create(`{"id":${id},"name":"Fern ${id}"}`)
    assert.deepEqual(await use('list-plants.js', service), {
      names: ['Fern 1', 'Fern 2'],
      ids: [1, 2],
      types: ['plant.created', 'plant.created'],
    })
  })
})
