import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { issueToken } from '../../src/tokens/issue.ts'
import { run } from '../support/command.ts'
import { type Engine, engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { call } from '../support/wire.ts'

const folder = newFolder()
const copy = (from: string, to: string) => run(['copy', '--from', from, '--to', to], { folder })

async function fill(engine: Engine) {
  const url = await engine.newUrl()
  const store = await engine.open(url)
  const plants = Array.from({ length: 2_500 }, (_, id) => ({
    id: BigInt(id) * 7n - 900n,
    name: `plant ${id}`,
  }))
  await store.importPlants(plants, 'keep')
  const { token } = await issueToken(store, {
    name: 'Ada',
    scopes: ['plants:read'],
    lifetimeMs: undefined,
  })
  const gone = await issueToken(store, {
    name: 'Eve',
    scopes: ['plants:read'],
    lifetimeMs: undefined,
  })
  const version = (await store.getPlant(-900n))?.version
  return { url, store, token, gone, version }
}

for (const source of engines) {
  for (const destination of engines) {
    describe(`plant-store copy from ${source.name} to ${destination.name}`, async () => {
      it('brings over plants, entity tags and tokens, and can be run again', async () => {
        const { url, store, token, gone, version } = await fill(source)
        const to = await destination.newUrl()
        const first = await copy(url, to)
        assert.equal(first.exitCode, 0, first.stderr)
        const exported = await run(['export', '--quiet'], { folder, env: { DATABASE_URL: url } })
        const checksum = createHash('sha256').update(exported.stdout).digest('hex')
        const summary = `Copied: 2,500 plants and the tokens; both sides have the checksum ${checksum}.\n`
        assert.equal(first.stderr, summary)
        await store.revokeToken(gone.record.id, Date.now())
        await store.close()
        assert.equal((await copy(url, to)).stderr, summary)

        const service = await startService(to)
        const ask = (secret: string) =>
          call(service.url, {
            path: '/plants/-900',
            headers: { Authorization: `Bearer ${secret}` },
          })
        const answer = await ask(token)
        assert.equal(answer.status, 200)
        assert.equal(answer.headers.get('etag'), `"${version?.toString(16)}"`)
        assert.equal((await ask(gone.token)).status, 401)
      })

      it('overwrites nothing in a store that is another one, and says so', async () => {
        const { url, store } = await fill(source)
        await store.close()
        const to = await destination.newUrl()
        const other = await destination.open(to)
        await other.createPlant({ id: -900n, name: 'mine' })
        const conflict = await copy(url, to)
        assert.match(
          conflict.stderr,
          /^The plant -900 is in .* with another content, and was not changed/,
        )
        assert.equal(conflict.exitCode, 65)
        assert.equal((await other.getPlant(-900n))?.name, 'mine')
        await other.close()
      })

      it('does not call it the same when the destination has more', async () => {
        const { url, store } = await fill(source)
        await store.close()
        const to = await destination.newUrl()
        const other = await destination.open(to)
        await other.createPlant({ id: -(2n ** 63n), name: 'mine' })
        await other.close()
        const more = await copy(url, to)
        assert.match(
          more.stderr,
          /^The two stores are not the same: the source has 2,500 plants, the destination 2,501/,
        )
        assert.equal(more.exitCode, 65)
      })
    })
  }
}

describe('plant-store copy', () => {
  it('names what is wrong with its addresses', async () => {
    const wrong = await copy('mysql:x', 'y')
    assert.match(wrong.stderr, /^--from must be .*\n--to must be /)
    assert.equal(wrong.exitCode, 78)
    assert.match((await copy('sqlite:a.db', 'sqlite:a.db')).stderr, /^--from and --to are the same/)
    await run(['token', 'create', '--name', 'a', '--database', 'sqlite:a.db'], { folder })
    assert.match(
      (await copy('sqlite:a.db', 'sqlite:./a.db')).stderr,
      /^--from and --to are the same/,
    )
    assert.match((await copy('sqlite:no.db', 'sqlite:b.db')).stderr, /^There is no store at no\.db/)
  })
})
