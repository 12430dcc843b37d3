import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { limits } from '../../src/contract/limits.ts'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { operatorToken, startService } from '../support/service.ts'

const folder = newFolder()

for (const engine of engines) {
  describe(`plant-store list on ${engine.name}`, () => {
    const sources: Record<string, string[]> = {}
    const env = { PLANT_STORE_TOKEN: operatorToken }
    before(async () => {
      const database = await engine.newUrl()
      const { store, url } = await startService(database)
      const count = limits.examinedPlants + 10
      const plants = Array.from({ length: count }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))
      await store.importPlants(plants, 'keep')
      await store.createPlant({ id: -(2n ** 63n), name: 'Rosa', tag: 'red' })
      await store.createPlant({ id: 2n ** 63n - 1n, name: 'a PRO\u001b\u2028', tag: '' })
      await store.createPlant({ id: -2n, name: 'Rosa' })
      sources['a store'] = ['--database', database]
      sources['a service'] = ['--url', url]
    })

    for (const source of ['a store', 'a service']) {
      const list = (...flags: string[]) =>
        run(['list', ...(sources[source] ?? []), ...flags], { folder, env })

      it(`finds plants of ${source} by a part of their name, in both orders`, async () => {
        const lines = [
          '-9223372036854775808  Rosa  red',
          '-2  Rosa',
          '9223372036854775807  a PRO\\u001b\\u2028  ',
        ]
        const { stdout, stderr, exitCode } = await list('--name', 'rO')
        assert.deepEqual([stdout, stderr, exitCode], [`${lines.join('\n')}\n`, '', 0])
        const back = await list('--name', 'rO', '--order', 'desc')
        assert.equal(back.stdout, `${lines.toReversed().join('\n')}\n`)
      })

      it(`prints plants of ${source} as JSON, with exact ids`, async () => {
        const { stdout } = await list('--name', 'pro', '--json')
        assert.equal(stdout, '{"id":9223372036854775807,"name":"a PRO\\u001b\\u2028","tag":""}\n')
      })

      it(`lists all plants of ${source}, and those of a tag`, async () => {
        assert.equal((await list()).stdout.split('\n').length - 1, limits.examinedPlants + 13)
        assert.equal((await list('--tag', 'red')).stdout, '-9223372036854775808  Rosa  red\n')
      })

      it(`says that no plant of ${source} was found`, async () => {
        const { stdout, stderr, exitCode } = await list('--name', '%')
        assert.deepEqual([stdout, stderr, exitCode], ['', 'No plant was found.\n', 0])
        assert.equal((await list('--name', '%', '--json')).stderr, '')
      })
    }

    it('refuses what no search can have', async () => {
      const long = await run(['list', '--name', 'x'.repeat(1_001)], { folder })
      assert.match(long.stderr, /^--name must be text of at most 1000 characters/)
      assert.equal(long.exitCode, 78)
      const wrongOrder = await run(['list', '--order', 'up'], { folder })
      assert.match(wrongOrder.stderr, /Allowed choices are asc, desc/)
      assert.equal(wrongOrder.exitCode, 64)
      const token = await run(['list', '--token', 'x'], { folder })
      assert.deepEqual([token.stderr, token.exitCode], ['--token needs --url.\n', 78])
    })

    it('explains that a service refuses its token', async () => {
      const flags = [...(sources['a service'] ?? []), '--token', 'another-token-of-20-letters']
      const { stderr, exitCode } = await run(['list', ...flags], { folder })
      assert.match(stderr, /^The service rejected the token: /)
      assert.equal(exitCode, 77)
    })
  })
}
