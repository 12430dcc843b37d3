import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { type Run, run } from '../support/command.ts'
import { newDatabase } from '../support/databases.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { startService } from '../support/service.ts'
import { call } from '../support/wire.ts'
import { ends, endsWith } from './ends.ts'

/** On a machine that is very busy, a copy can miss the time limits of the store: it continues. */
async function copy(from: string, to: string, folder = newFolder(), attempts = 3): Promise<Run> {
  const done = await run(['copy', '--from', from, '--to', to], { folder })
  return done.exitCode === 74 && attempts > 1 ? copy(from, to, folder, attempts - 1) : done
}

/** Makes a server spoil each row that is added to a table. SQLite files with a trigger are refused. */
function toTrigger(table: string, body: string): string {
  return `
    CREATE FUNCTION plant_store.spoil() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN ${body}; END $$;
    CREATE TRIGGER spoil BEFORE INSERT ON plant_store.${table}
      FOR EACH ROW EXECUTE FUNCTION plant_store.spoil()`
}

const request = { scopes: ['plants:read'], lifetimeMs: undefined } as const

/** Every plant and token of a store. */
async function readAll(store: Store) {
  const { plants } = await store.listPlants({ after: undefined, tag: undefined, limit: 1_000 })
  return { plants, tokens: await store.listTokens() }
}

async function fill(engine: Engine) {
  const url = await engine.newUrl()
  const store = await engine.open(url)
  const plants = Array.from({ length: 2_500 }, (_, id) => ({
    id: BigInt(id) * 7n - 900n,
    name: `plant ${id}`,
  }))
  await store.importPlants(plants, 'keep')
  const { token } = await issueToken(store, { ...request, name: 'Ada' })
  const gone = await issueToken(store, { ...request, name: 'Eve' })
  const version = (await store.getPlant(-900n))?.version
  return { url, store, token, gone, version }
}

const filled = await fill(sqlite)
await filled.store.close()

for (const source of engines) {
  for (const destination of engines) {
    it(`copy from ${source.name} to ${destination.name} brings plants, ETags and tokens`, async () => {
      const { url, store, token, gone, version } = await fill(source)
      const to = await destination.newUrl()
      const env = { DATABASE_URL: url }
      const exported = await ends('export --quiet', 0, '', { folder: newFolder(), env })
      const checksum = createHash('sha256').update(exported).digest('hex')
      const summary = `Copied: 2,500 plants and the tokens; both stores have the checksum ${checksum}.\n`
      // A slow machine shows progress before it.
      const said = new RegExp(`^(copy: .*\n)*${RegExp.escape(summary)}$`)
      await endsWith(copy(url, to), 0, said)
      await store.revokeToken(gone.record.id, Date.now())
      await store.close()
      await endsWith(copy(url, to), 0, said)

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
  }
}

/** What a destination may hold already, and how the message names it. */
const strangers: [title: string, named: string, add: (store: Store) => Promise<unknown>][] = [
  ['a plant that the source does not have', 'plant -1', (store) => store.createPlant(mine(-1n))],
  ['a plant after the last one', 'plant 99999', (store) => store.createPlant(mine(99_999n))],
  ['a plant with different content', 'plant -900', (store) => store.createPlant(mine(-900n))],
  [
    'a token that the source does not have',
    'token tok_\\w+',
    (store) => issueToken(store, { ...request, name: 'mine' }),
  ],
]
const mine = (id: bigint) => ({ id, name: 'mine' })

for (const destination of engines) {
  describe(`plant-store copy writes nothing to a store on ${destination.name}`, () => {
    for (const [title, named, add] of strangers) {
      it(`with ${title}`, async () => {
        const to = await destination.newUrl()
        const store = await destination.open(to)
        await add(store)
        const before = await readAll(store)
        const other = `(sqlite|postgres):\\S+ holds ${named}, which the source does not have`
        await endsWith(copy(filled.url, to), 65, new RegExp(`^${other}.*Nothing was copied.*\n$`))
        assert.deepEqual(await readAll(store), before)
      })
    }
  })
}

describe('plant-store copy', () => {
  it('names what is wrong with each of its addresses', async () => {
    await ends('copy --from mysql:x --to y', 78, /^--from must be .*\n--to must be /, newFolder())
  })

  it('counts to 100 % once, over the copy and the comparison', async (test) => {
    const { url, store } = await fill(sqlite)
    await store.close()
    let nowMs = performance.now()
    // Each look at the clock is much later than the one before, so that each report is shown.
    test.mock.method(performance, 'now', () => {
      nowMs += 10_000
      return nowMs
    })
    const { stderr } = await copy(url, await sqlite.newUrl())
    const reports = [...stderr.matchAll(/^copy: ([\d,]+) plants, .* (\d+) %, /gm)]
    const counts = reports.map(([, count = '']) => Number(count.replace(',', '')))
    const shares = reports.map(([, , share]) => Number(share))
    assert.deepEqual(shares, [20, 40, 50, 70, 90, 100])
    assert.deepEqual(counts, [500, 1_000, 1_250, 1_750, 2_250, 2_500])
  })

  it('notices that tokens are missing in the destination', async () => {
    const folder = newFolder()
    const [from, to] = ['sqlite:from.db', await newDatabase()]
    await ends(`token create --name a --database ${from}`, 0, /./, folder)
    await endsWith(copy(from, to, folder), 0, /./)
    await ends(`token create --name b --database ${from}`, 0, /./, folder)
    await query(to, toTrigger('tokens', 'RETURN NULL'))
    const said = /^The stores differ: postgres:\S+ has other tokens\. Copy into an empty store/
    await endsWith(copy(from, to, folder), 65, said)
  })

  it('brings no token into a store whose plants turn out to differ', async () => {
    const folder = newFolder()
    const [from, to] = ['sqlite:from.db', await newDatabase()]
    const line = 'import - --format csv --database'
    await ends(`${line} ${from}`, 0, /./, { folder, input: 'id,name\n1,a\n' })
    await ends(`token create --name a --database ${from}`, 0, /./, folder)
    await ends(`${line} ${to}`, 0, /./, { folder, input: 'id,name\n' })
    await query(to, toTrigger('plants', "NEW.name := 'b'; RETURN NEW"))
    const said = /^The stores differ: postgres:\S+ has other plants\./
    await endsWith(copy(from, to, folder), 65, said)
    assert.deepEqual([...(await query(to, 'SELECT * FROM plant_store.tokens'))], [])
  })

  it('continues a copy that was interrupted', async () => {
    const folder = newFolder()
    const [from, to] = ['sqlite:from.db', 'sqlite:to.db']
    const lines = [1, 2, 3].map((id) => `{"id":${id},"name":"plant ${id}"}\n`)
    const line = 'import - --format ndjson --database'
    await ends(`${line} ${from}`, 0, /./, { folder, input: lines.join('') })
    await ends(`${line} ${to}`, 0, /./, { folder, input: `${lines[0]}${lines[2]}` })
    await ends(`copy --from ${from} --to ${to}`, 0, /^Copied: 3 plants/, folder)
  })
})
