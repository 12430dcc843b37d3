import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { issueToken } from '../../src/tokens/issue.ts'
import { toSubjectId } from '../../src/tokens/issuer.ts'
import { run, start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { json, startService } from '../support/service.ts'

for (const engine of engines) {
  describe(`plant-store log on ${engine.name}`, () => {
    async function prepare() {
      const url = await engine.newUrl()
      const service = await startService(url)
      const { token, record } = await issueToken(service.store, {
        name: 'gardener',
        scopes: ['plants:write'],
        lifetimeMs: undefined,
      })
      const mine = { ...json, Authorization: `Bearer ${token}` }
      await service.create('{"id":9223372036854775807,"name":"Fern"}', mine)
      await service.create('{"id":2,"name":"Rose"}')
      const replaced = { method: 'PUT', path: '/plants/2', body: '{"name":"Rosa"}', headers: mine }
      await service.call(replaced)
      await service.call({ method: 'DELETE', path: '/plants/2', headers: mine })
      await service.create('{"id":2,"name":"again"}', mine)
      await service.create('{"id":2,"name":"refused"}', mine)
      const options = { folder: newFolder(), env: { DATABASE_URL: url } }
      return { service, record, options, mine }
    }

    it('shows the time, the change, the plant and the token of every change', async () => {
      const { record, options } = await prepare()
      const { stdout, exitCode } = await run(['log'], options)
      const by = `${record.id} "gardener"`
      assert.deepEqual(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) => line.replace(/^[\d-]{10}T[\d:.]{12}Z {2}/, '')),
        [
          `created   9223372036854775807  ${by}`,
          'created   2  PLANT_STORE_TOKEN',
          `replaced  2  ${by}`,
          `deleted   2  ${by}`,
          `created   2  ${by}`,
        ],
      )
      assert.equal(exitCode, 0)
    })

    it('names the subject of a JSON Web Token by the id that the docs tell how to make', async () => {
      const { service, options } = await prepare()
      const id = toSubjectId('https://login.example', 'alice')
      await service.store.createPlant({ id: 3n, name: 'Ivy' }, id)
      const { stdout } = await run(['log', '--token', id], options)
      assert.match(stdout, /^\S+ {2}created {3}3 {2}jwt-11db4171ed251e3691f945632e19f5b8\n$/)
    })

    it('selects by plant, token and time', async () => {
      const { record, options } = await prepare()
      const count = async (...flags: string[]) =>
        (await run(['log', ...flags], options)).stdout.split('\n').length - 1
      assert.equal(await count('--plant', '2'), 4)
      assert.equal(await count('--token', record.id), 4)
      assert.equal(await count('--plant', '2', '--token', record.id), 3)
      assert.equal(await count('--since', '1h'), 5)
      assert.equal(await count('--since', '0s'), 0)
    })

    it('shows the last changes that it selects with --limit, oldest first', async () => {
      const { service, options, mine } = await prepare()
      const show = async (...flags: string[]) => {
        const { stdout } = await run(['log', ...flags], options)
        return stdout.match(/(?<=Z {2})\w+ +\d+/g)
      }
      assert.deepEqual(await show('--limit', '2'), ['deleted   2', 'created   2'])
      assert.deepEqual(await show('--limit', '1', '--plant', '9223372036854775807'), [
        'created   9223372036854775807',
      ])
      assert.equal((await show('--limit', '100000'))?.length, 5)
      const following = start(['log', '--follow', '--limit', '1'], options)
      await following.waitFor(/created {3}2/)
      for (const id of [77, 78]) await service.create(`{"id":${id},"name":"Fern"}`, mine)
      await following.waitFor(/created {3}78/)
      following.child.kill('SIGTERM')
      const { stdout } = await following.ended
      assert.deepEqual(stdout.match(/\w+ +\d+(?= {2}tok)/g), [
        'created   2',
        'created   77',
        'created   78',
      ])
    })

    it('says that it has found nothing', async () => {
      const { options } = await prepare()
      for (const flags of [
        ['--token', 'nope'],
        ['--plant', '99', '--json', '--limit', '5'],
      ]) {
        const found = await run(['log', ...flags], options)
        assert.deepEqual(found, { exitCode: 0, stdout: '', stderr: 'No changes found.\n' })
      }
      assert.equal((await run(['log', '--plant', '2'], options)).stderr, '')
    })

    it('prints JSON with exact ids', async () => {
      const { record, options } = await prepare()
      const { stdout } = await run(['log', '--json', '--plant', '9223372036854775807'], options)
      assert.match(stdout, /"plantId":9223372036854775807,/)
      const { tokenId, tokenName, type } = JSON.parse(stdout)
      assert.deepEqual(
        { tokenId, tokenName, type },
        { tokenId: record.id, tokenName: 'gardener', type: 'plant.created' },
      )
    })

    it('goes on with changes of a running service, until a signal', async () => {
      const { service, options, mine } = await prepare()
      const following = start(['log', '--follow', '--plant', '77'], options)
      // The first is there before it follows or after it: it is shown either way.
      await service.create('{"id":77,"name":"Fern"}', mine)
      await following.waitFor(/created {3}77/)
      await service.call({ method: 'DELETE', path: '/plants/77', headers: mine })
      await following.waitFor(/deleted {3}77/)
      following.child.kill('SIGTERM')
      assert.equal((await following.ended).exitCode, 0)
    })
  })
}

describe('plant-store log', () => {
  it('names a command as the author of its changes', async () => {
    const folder = newFolder()
    const env = { DATABASE_URL: `sqlite:${join(folder, 'plants.db')}` }
    await run(['import', '-', '--format', 'ndjson'], {
      folder,
      env,
      input: '{"id":1,"name":"x"}\n',
    })
    const { stdout } = await run(['log'], { folder, env })
    assert.match(stdout, /created {3}1 {2}a command on the store\n$/)
    const asJson = await run(['log', '--json'], { folder, env })
    assert.match(asJson.stdout, /"tokenId":null,"tokenName":null}\n$/)
  })
})
