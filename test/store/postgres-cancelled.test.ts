import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { lookUpConnections, pageConnections } from '../../src/store/postgres/session.ts'
import type { Sql } from '../../src/store/postgres/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { postgres } from '../support/engines.ts'
import { newDelivery, newReceiver } from '../support/receiver-record.ts'
import { releaseAfterTest } from '../support/release.ts'
import { openRowHolder } from '../support/row-holder.ts'
import { authorized, startService } from '../support/service.ts'
import { openPostgresStore } from '../support/stores.ts'
import { newTokenRecord } from '../support/token-record.ts'
import { waitUntil } from '../support/wait.ts'
import { call, openSocket, toBytes } from '../support/wire.ts'

const held = 'a plant whose row is the last one to arrive'
const token = newTokenRecord({ id: 'tok_one', hash: Buffer.alloc(32, 1) })
const page = { after: undefined, tag: undefined, limit: 10 }
const answerTimeoutMs = 2_000

/** A store behind a proxy, with some of everything that a select can find. */
async function openHeldStore() {
  const direct = await postgres.newUrl()
  const { hostname, port } = new URL(direct)
  const holder = await openRowHolder(hostname, Number(port))
  const url = holder.toUrl(direct)
  const store = await openPostgresStore(url, { answerTimeoutMs })
  for (let id = 1n; id <= 5n; id++) await store.createPlant({ id, name: `plant ${id}` })
  await store.createPlant({ id: 6n, name: held })
  await store.addToken(token)
  await store.addToken(newTokenRecord())
  await store.receivers.add(newReceiver())
  await store.receivers.addDelivery('whk_1', newDelivery())
  return { holder, url, store }
}

/** Makes this many reads late after their first row, each on a connection of its own. */
async function endInTheMiddle(
  holder: Awaited<ReturnType<typeof openRowHolder>>,
  read: () => Promise<unknown>,
  count: number,
): Promise<void> {
  holder.holdAfter(held)
  const reads: Promise<void>[] = []
  for (let number = 1; number <= count; number++) {
    reads.push(assert.rejects(read, { number: 50301 }))
    await waitUntil(() => holder.heldCount() === number, `${number} reads have got a row`)
  }
  holder.pass()
  await Promise.all(reads)
  await waitUntil(() => holder.heldCount() === 0, 'the connections have learned of it')
}

type Select = (store: Store) => Promise<unknown>

const lookUps: [what: string, select: Select][] = [
  ['a token', (store) => store.findToken(token.hash)],
  ['the tokens', (store) => store.listTokens()],
  ['the revision of the tokens', (store) => store.tokenRevision()],
  ['a plant', async (store) => store.getPlant(2n)],
  ['the receivers', (store) => store.receivers.list()],
  ['the revision of the receivers', (store) => store.receivers.revision()],
  ['the deliveries', (store) => store.receivers.listDeliveries('whk_1', 'waiting')],
  ['what waits for each receiver', (store) => store.receivers.listBacklogs()],
  ['the sizes of the tables', async (store) => (await store.measure()).sizes.length],
]

const pages: [what: string, select: Select][] = [
  ['a page of plants', (store) => store.listPlants(page)],
  ['a page of the journal', (store) => store.readJournal('oldest', 10)],
  ['the end of the journal', (store) => store.journalEnd()],
]

describe('after reads of PostgreSQL that ended in the middle of their rows', () => {
  const kinds = [
    ['lookUps', lookUps, lookUpConnections, async (store: Store) => store.getPlant(6n)],
    ['pages', pages, pageConnections, (store: Store) => store.listPlants(page)],
  ] as const
  for (const [lane, selects, connections, read] of kinds) {
    it(`every select of the lane ${lane} finds all that it found before`, async () => {
      const { holder, store } = await openHeldStore()
      // As many as there are connections, so that each of them has to serve one.
      for (let start = 0; start < selects.length; start += connections) {
        const some = selects.slice(start, start + connections)
        const run = () => Promise.allSettled(some.map(([, select]) => select(store)))
        const before = await run()
        await endInTheMiddle(holder, async () => read(store), connections)
        const after = await run()
        for (const [index, [what]] of some.entries()) {
          assert.deepEqual(after[index], before[index], what)
        }
      }
    })
  }
})

describe('after gets over HTTP whose clients left in the middle of their rows', () => {
  it('a valid token is let in, and finds its plant', async () => {
    const { holder, url, store } = await openHeldStore()
    const service = await startService(url, { store })
    const request = { name: 'test', scopes: ['plants:read'], lifetimeMs: undefined } as const
    const issued = await Promise.all(
      Array.from({ length: lookUpConnections }, () => issueToken(store, request)),
    )
    holder.holdAfter(held)
    const clients = []
    for (let number = 1; number <= lookUpConnections; number++) {
      const client = openSocket(service.url)
      client.write(toBytes({ path: '/plants/6', headers: authorized }))
      clients.push(client)
      await waitUntil(() => holder.heldCount() === number, `${number} gets have got a row`)
    }
    holder.pass()
    for (const client of clients) {
      client.destroy()
      await once(client, 'close')
    }
    await waitUntil(() => holder.heldCount() === 0, 'the connections have learned of it')
    const answers = await Promise.all(
      issued.map((one) =>
        call(service.url, { path: '/plants/2', headers: { Authorization: `Bearer ${one.token}` } }),
      ),
    )
    for (const { status, body } of answers) {
      assert.equal(status, 200, body)
      assert.deepEqual(JSON.parse(body), { id: 2, name: 'plant 2' })
    }
  })
})

describe('a result after one that ended in the middle of its rows, on one connection', () => {
  it('has all its rows and no others, or is refused', async () => {
    const connection = await openPrimary(await postgres.newUrl(), { onLost() {}, onFound() {} })
    releaseAfterTest(connection.close)
    const writer = connection.session()?.writers[0] as Sql
    const failing = writer`SELECT 1 / (5 - id) AS one FROM generate_series(1, 10) AS id`
    await assert.rejects(async () => failing, { code: '22012' })
    const [next] = await Promise.allSettled([writer`SELECT 1 AS one`])
    if (next.status === 'fulfilled') assert.deepEqual([...next.value], [{ one: 1 }])
    else assert.equal(next.reason.code, 'ROWS_MISSING')
    assert.deepEqual([...(await writer`SELECT 2 AS two`)], [{ two: 2 }])
  })
})
