import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { type Run, run, runProcess } from '../support/command.ts'
import { newDatabase } from '../support/databases.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { startService } from '../support/service.ts'
import { call } from '../support/wire.ts'

/** On a machine that is very busy, a copy can miss the time limits of the store: it goes on. */
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

for (const source of engines) {
  let shared: string
  before(async () => {
    const { url, store } = await fill(source)
    await store.close()
    shared = url
  })

  for (const destination of engines) {
    describe(`plant-store copy from ${source.name} to ${destination.name}`, () => {
      it('copies plants, entity tags and tokens, and can be run again', async () => {
        const { url, store, token, gone, version } = await fill(source)
        const to = await destination.newUrl()
        const first = await copy(url, to)
        assert.equal(first.exitCode, 0, first.stderr)
        const env = { DATABASE_URL: url }
        const exported = await run(['export', '--quiet'], { folder: newFolder(), env })
        const checksum = createHash('sha256').update(exported.stdout).digest('hex')
        const summary = `Copied: 2,500 plants and the tokens; both stores have the checksum ${checksum}.\n`
        // A slow machine shows progress before it.
        assert.ok(first.stderr.endsWith(summary), first.stderr)
        await store.revokeToken(gone.record.id, Date.now())
        await store.close()
        assert.ok((await copy(url, to)).stderr.endsWith(summary))

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

      const strangers: [title: string, message: RegExp, add: (store: Store) => Promise<unknown>][] =
        [
          [
            'a plant that the source does not have',
            /^sqlite:\S+|^postgres:\S+ holds plant -1, which/,
            (store) => store.createPlant({ id: -1n, name: 'mine' }),
          ],
          [
            'a plant after the last one of the source',
            / holds plant 99999, which /,
            (store) => store.createPlant({ id: 99_999n, name: 'mine' }),
          ],
          [
            'a plant with different content',
            / holds plant -900, which /,
            (store) => store.createPlant({ id: -900n, name: 'mine' }),
          ],
          [
            'a token that the source does not have',
            / holds token tok_\w+, which /,
            (store) => issueToken(store, { ...request, name: 'mine' }),
          ],
        ]
      for (const [title, message, add] of strangers) {
        it(`writes nothing to a store with ${title}`, async () => {
          const to = await destination.newUrl()
          const other = await destination.open(to)
          await add(other)
          const before = await readAll(other)
          const { exitCode, stderr } = await copy(shared, to)
          assert.match(stderr, message)
          assert.match(stderr, /the source does not have[^\n]*Nothing was copied[^\n]*\n$/)
          assert.equal(exitCode, 65)
          assert.deepEqual(await readAll(other), before)
        })
      }
    })
  }
}

describe('plant-store copy', () => {
  it('names what is wrong with its addresses', async () => {
    const folder = newFolder()
    const wrong = await copy('mysql:x', 'y', folder)
    assert.match(wrong.stderr, /^--from must be .*\n--to must be /)
    assert.equal(wrong.exitCode, 78)
    const same = /^--from and --to name the same store/
    assert.match((await copy('sqlite:a.db', 'sqlite:a.db', folder)).stderr, same)
    await run(['token', 'create', '--name', 'a', '--database', 'sqlite:a.db'], { folder })
    assert.match((await copy('sqlite:a.db', 'sqlite:./a.db', folder)).stderr, same)
    const missing = await copy('sqlite:no.db', 'sqlite:b.db', folder)
    assert.match(missing.stderr, /^--from: there is no store at sqlite:\/.*\/no\.db\.\n$/)
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
    await run(['token', 'create', '--name', 'a', '--database', from], { folder })
    assert.equal((await copy(from, to, folder)).exitCode, 0)
    await run(['token', 'create', '--name', 'b', '--database', from], { folder })
    await query(to, toTrigger('tokens', 'RETURN NULL'))
    const { exitCode, stderr } = await copy(from, to, folder)
    assert.match(
      stderr,
      /^The stores differ: postgres:\S+ lacks token tok_\w+\. Copy into an empty store/,
    )
    assert.equal(exitCode, 65)
  })

  it('brings no token into a store whose plants turn out to differ', async () => {
    const folder = newFolder()
    const [from, to] = ['sqlite:from.db', await newDatabase()]
    const env = { DATABASE_URL: from }
    await run(['import', '-', '--format', 'ndjson'], { folder, env, input: '{"id":1,"name":"a"}' })
    await run(['token', 'create', '--name', 'a'], { folder, env })
    await run(['import', '-', '--format', 'csv'], {
      folder,
      env: { DATABASE_URL: to },
      input: 'id,name\n',
    })
    await query(to, toTrigger('plants', "NEW.name := 'b'; RETURN NEW"))
    const { exitCode, stderr } = await copy(from, to, folder)
    assert.match(stderr, /^The stores differ: postgres:\S+ holds another plant 1\./)
    assert.equal(exitCode, 65)
    assert.deepEqual([...(await query(to, 'SELECT * FROM plant_store.tokens'))], [])
  })

  it('continues a copy that was interrupted', async () => {
    const folder = newFolder()
    const [from, to] = ['sqlite:from.db', 'sqlite:to.db']
    const lines = [1, 2, 3].map((id) => `{"id":${id},"name":"plant ${id}"}\n`)
    const importInto = (url: string, input: string) =>
      run(['import', '-', '--format', 'ndjson', '--database', url], { folder, input })
    await importInto(from, lines.join(''))
    await importInto(to, `${lines[0]}${lines[2]}`)
    const { exitCode, stderr } = await runProcess(['copy', '--from', from, '--to', to], { folder })
    assert.match(stderr, /^Copied: 3 plants/)
    assert.equal(exitCode, 0)
  })
})
