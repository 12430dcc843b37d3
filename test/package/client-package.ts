import assert from 'node:assert/strict'
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { newFolder } from '../support/folder.ts'
import { npm, runNode } from '../support/packages.ts'
import { operatorToken, startService } from '../support/service.ts'

const root = join(import.meta.dirname, '..', '..')
const readJson = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'))

const program = `
import { PlantStore, PlantStoreError } from 'plant-store-client'
const [url, token] = process.argv.slice(2)
const store = new PlantStore({ url, token })
const { id } = await store.create({ id: 2n ** 62n + 1n, name: 'Ficus' })
const error = await store.create({ id, name: 'other' }).catch((caught) => caught)
const types = []
for await (const { type } of store.mirror()) if (types.push(type) === 3) break
console.log(id, error instanceof PlantStoreError, error.error, types.join(' '))
`

describe('the package of the client alone', { timeout: 600_000 }, () => {
  /** A project that has installed it, and nothing else. */
  const project = newFolder()
  const installed = join(project, 'node_modules', 'plant-store-client')

  before(async () => {
    const copy = newFolder()
    for (const file of ['client', 'tsconfig.json', 'tsconfig.build.json']) {
      cpSync(join(root, file), join(copy, file), { recursive: true })
    }
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    mkdirSync(join(copy, 'packed'))
    await npm(join(copy, 'client'), ['pack', '--pack-destination', join(copy, 'packed')])
    const [name = ''] = globSync('*.tgz', { cwd: join(copy, 'packed') })
    assert.deepEqual(globSync('dist', { cwd: join(copy, 'client') }), [])
    writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}')
    await npm(project, ['install', '--offline', '--ignore-scripts', join(copy, 'packed', name)])
  })

  it('holds the compiled client, its types and its licence, and needs no other package', () => {
    const files = globSync('**/*.*', { cwd: installed })
    const allowed = /^(dist\/[\w-]+(\.js|\.js\.map|\.d\.ts)|README\.md|package\.json)$/
    const others = files.filter((file) => !allowed.test(file))
    assert.deepEqual(others, [])
    assert.ok(files.includes(join('dist', 'index.d.ts')))
    assert.match(readFileSync(join(installed, 'LICENSE'), 'utf8'), /MIT License/)
    assert.deepEqual(globSync('*', { cwd: join(project, 'node_modules') }), ['plant-store-client'])
  })

  it('calls a service', async () => {
    const { url } = await startService('sqlite::memory:')
    writeFileSync(join(project, 'program.js'), program)
    assert.equal(
      await runNode(project, ['program.js', url, operatorToken]),
      '4611686018427387905n true 40900 reset plant synced\n',
    )
  })

  it('has the version and the licence of the service, on npm and on JSR', () => {
    const { version, license } = readJson('package.json')
    for (const file of ['client/package.json', 'client/jsr.json']) {
      const own = readJson(file)
      assert.deepEqual([own.version, own.license], [version, license])
    }
    const read = (file: string) => readFileSync(join(root, file), 'utf8')
    assert.equal(read('client/LICENSE'), read('LICENSE'))
  })
})
