import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { toSubjectId } from '../../src/tokens/issuer.ts'
import { start } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { json, startService } from '../support/service.ts'
import { ends, endsWith, newStore } from './ends.ts'

const largest = '9223372036854775807'

/** A service with some changes by a token, by PLANT_STORE_TOKEN and by a JSON Web Token. */
async function prepare(url: string) {
  const service = await startService(url)
  const scopes = ['plants:write'] as const
  const { headers, record } = await service.issue({ name: 'gardener', scopes })
  const mine = { ...json, ...headers }
  await service.create(`{"id":${largest},"name":"Fern"}`, mine)
  await service.create('{"id":2,"name":"Rose"}')
  const replaced = { method: 'PUT', path: '/plants/2', body: '{"name":"Rosa"}', headers: mine }
  await service.call(replaced)
  await service.call({ method: 'DELETE', path: '/plants/2', headers: mine })
  await service.create('{"id":2,"name":"again"}', mine)
  await service.create('{"id":2,"name":"refused"}', mine)
  // The docs tell how to make this id.
  const subject = toSubjectId('https://login.example', 'alice')
  await service.store.createPlant({ id: 3n, name: 'Ivy' }, subject)
  return { service, mine, gardener: record.id }
}

const all = [
  `created   ${largest}  TOKEN "gardener"`,
  'created   2  PLANT_STORE_TOKEN',
  'replaced  2  TOKEN "gardener"',
  'deleted   2  TOKEN "gardener"',
  'created   2  TOKEN "gardener"',
  'created   3  jwt-11db4171ed251e3691f945632e19f5b8',
]
/** Flags, and the numbers of the changes that they show. TOKEN stands for an id. */
const selections: [flags: string, shown: number[]][] = [
  ['', [0, 1, 2, 3, 4, 5]],
  ['--since 1h', [0, 1, 2, 3, 4, 5]],
  ['--since 0s', []],
  ['--plant 2', [1, 2, 3, 4]],
  [`--plant ${largest} --limit 1`, [0]],
  ['--plant 99 --limit 5', []],
  ['--token TOKEN', [0, 2, 3, 4]],
  ['--token jwt-11db4171ed251e3691f945632e19f5b8', [5]],
  ['--token nope', []],
  ['--plant 2 --token TOKEN', [2, 3, 4]],
  ['--limit 2', [4, 5]],
  ['--limit 100000', [0, 1, 2, 3, 4, 5]],
]

for (const engine of engines) {
  describe(`plant-store log on ${engine.name}`, () => {
    let options: { folder: string; env: Record<string, string> }
    let prepared: Awaited<ReturnType<typeof prepare>>
    before(async () => {
      options = { folder: newFolder(), env: { DATABASE_URL: await engine.newUrl() } }
      prepared = await prepare(String(options.env.DATABASE_URL))
    })

    it('shows the time, the change, the plant and the token of the changes that it selects', async () => {
      const { gardener } = prepared
      for (const [flags, shown] of selections) {
        const said = shown.length === 0 ? 'No changes found.\n' : ''
        const line = `log ${flags.replace('TOKEN', gardener)}`.trim()
        const lines = (await ends(line, 0, said, options)).replaceAll(gardener, 'TOKEN').split('\n')
        const changes = lines.map((one) => one.replace(/^[\d-]{10}T[\d:.]{12}Z {2}/, ''))
        assert.deepEqual(changes, [...shown.map((index) => all[index]), ''], flags)
      }
    })

    it('prints JSON with exact ids', async () => {
      const stdout = await ends(`log --json --plant ${largest}`, 0, '', options)
      assert.match(stdout, new RegExp(`"plantId":${largest},`))
      const { tokenId, tokenName, type } = JSON.parse(stdout)
      const { gardener } = prepared
      assert.deepEqual([tokenId, tokenName, type], [gardener, 'gardener', 'plant.created'])
    })

    it('continues after the last changes with those of a running service, until a signal', async () => {
      const { service, mine } = prepared
      const following = start(['log', '--follow', '--limit', '1'], options)
      await following.waitFor(/created {3}3/)
      const { headers } = await service.issue({ name: 'new', scopes: ['plants:write'] })
      for (const id of [77, 78]) await service.create(`{"id":${id},"name":"Fern"}`, headers)
      await service.call({ method: 'DELETE', path: '/plants/77', headers: mine })
      await following.waitFor(/deleted {3}77/)
      following.child.kill('SIGTERM')
      const stdout = await endsWith(following.ended, 143, 'Stopped.\n')
      const shown = stdout.match(/\w+ +\d+ {2}\S+/g)?.map((one) => one.replace(/ tok.*/, ''))
      assert.deepEqual(shown?.slice(1), ['created   77 ', 'created   78 ', 'deleted   77 '])
      assert.equal(stdout.match(/created {3}7. {2}\S+ "new"$/gm)?.length, 2)
    })
  })
}

it('plant-store log names a command as the author of its changes', async () => {
  const folder = await newStore()
  assert.match(await ends('log', 0, '', folder), /created {3}1 {2}a command on the store\n$/)
  const asJson = await ends('log --json', 0, '', folder)
  assert.match(asJson, /"tokenId":null,"tokenName":null}\n$/)
})
