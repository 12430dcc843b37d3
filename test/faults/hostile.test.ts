import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type ErrorNumber, errorNumbers, toStatus } from '../../src/contract/errors.ts'
import { sqlite } from '../support/engines.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { collect, parseStrictly, type StrictAnswer } from './lab/answer-stream.ts'
import { buildHostileCase, type HostileCase } from './lab/hostile-requests.ts'
import { isLong, scale } from './lab/scale.ts'

// HOSTILE=<seed>:<index> runs one case alone, and prints what was sent and received.
const replayed = process.env.HOSTILE?.split(':').map(Number)
const seed = replayed?.[0] ?? Number(process.env.HOSTILE_SEED ?? 20260)
const count = scale(1_500, 100_000)
const connections = 256

/** What happened by the answers, from which the final content of the store follows. */
type Account = ReturnType<typeof newAccount>

function newAccount() {
  return {
    created: 0,
    deleted: 0,
    statuses: new Map<number, number>(),
    requestIds: new Set<string>(),
    /** Every plant that is stored by an answer. */
    confirmed: new Set<string>(),
  }
}

/** The statuses that a client can cause. */
const statuses = [
  100, 200, 201, 204, 400, 401, 404, 405, 408, 409, 413, 414, 415, 417, 422, 431, 505,
]

it('hostile requests get well-formed answers of every kind, and harm nothing', async (t) => {
  const service = await startService(isLong ? await sqlite.newUrl() : 'sqlite::memory:', {
    // Short, so that incomplete requests are answered soon.
    timeouts: { headersTimeoutMs: 300, requestTimeoutMs: 600, keepAliveTimeoutMs: 300 },
  })
  const account = await sendAll(service)
  const seen = [...account.statuses].sort(([one], [other]) => one - other)
  t.diagnostic(`seed ${seed}, ${count} connections`)
  t.diagnostic(seen.map(([status, times]) => `${status}: ${times}`).join(', '))
  t.diagnostic(`${account.created} plants created, ${account.deleted} deleted`)
  await checkStored(service, account)
  const missing = statuses.filter((status) => !account.statuses.has(status))
  if (!replayed) assert.deepEqual(missing, [], 'some answers were not reached')
  assert.equal((await service.create('{"id":-77,"name":"Fern"}')).status, 200)
  assert.equal((await service.call({ path: '/plants/-77' })).status, 200)
  const errors = service.log.filter((line) => JSON.parse(line).level >= 50)
  assert.deepEqual(errors, [])
})

/** Sends all cases over many connections at a time. Stops at the first wrong answer. */
async function sendAll(service: TestService): Promise<Account> {
  const port = Number(new URL(service.url).port)
  const account = newAccount()
  const indexes = replayed ? [Number(replayed[1])].values() : Array(count).keys()

  async function work(): Promise<void> {
    for (const index of indexes) await sendAndJudge(buildHostileCase(seed, index), port, account)
  }

  try {
    await Promise.all(Array.from({ length: connections }, work))
    return account
  } finally {
    indexes.return?.()
  }
}

async function sendAndJudge(sent: HostileCase, port: number, account: Account): Promise<void> {
  let received: Buffer = Buffer.alloc(0)
  try {
    received = await collect(port, sent.pieces)
    if (replayed) console.log(`${sent.bytes.toString('latin1')}\n---\n${received}`)
    const answers = parseStrictly(received)
    assert.ok(
      answers.some(({ status }) => status >= 200),
      'no answer',
    )
    for (const answer of answers) judge(answer, sent, account)
  } catch (error) {
    const bytes = JSON.stringify(sent.bytes.toString('latin1'))
    const title = `HOSTILE=${sent.seed}:${sent.index} ${bytes}`
    throw new Error(`${title}\ngot ${JSON.stringify(received.toString())}`, { cause: error })
  }
}

function judge(answer: StrictAnswer, { bytes }: HostileCase, account: Account): void {
  const { status, headers, isBodyLess } = answer
  account.statuses.set(status, (account.statuses.get(status) ?? 0) + 1)
  if (status === 100) return
  assert.ok(status < 500 || status === 505, `a fault of the service: ${status}`)
  const requestId = headers.get('x-request-id') ?? ''
  assert.match(requestId, /^[\w-]+$/)
  assert.ok(!account.requestIds.has(requestId), 'a request id is given twice')
  account.requestIds.add(requestId)
  const isHead = isBodyLess && ![204, 304].includes(status)
  assert.ok(!isHead || bytes.includes('HEAD'), 'a body is missing')
  if (status >= 400 && !isHead) checkError(answer)
  if (status < 400) {
    assert.ok(!isOfOperation(answer) || bytes.includes(operatorToken), 'executed without a token')
    keepAccount(answer, account)
  }
}

function checkError({ status, headers, body }: StrictAnswer): void {
  const content = JSON.parse(body) as { error: ErrorNumber; message: string }
  assert.deepEqual(Object.keys(content), ['error', 'message'])
  assert.ok(errorNumbers.includes(content.error), `the unknown number ${content.error}`)
  assert.equal(toStatus(content.error), status)
  assert.match(content.message, /^[A-Z].*\.$/s)
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
}

/** Whether an answer is that of an operation that needs a token: no cache may share it. */
function isOfOperation({ headers }: StrictAnswer): boolean {
  return headers.get('cache-control') === 'private, no-cache'
}

function keepAccount({ status, headers, body }: StrictAnswer, account: Account): void {
  if (status === 204 && !headers.has('allow')) account.deleted++
  const location = headers.get('location')
  if (location !== undefined && !headers.has('idempotency-replayed')) account.created++
  if (!headers.has('etag') || body === '') return
  // Only the answer to a create has no id in its body.
  const id = /\/plants\/(-?\d+)$/.exec(location ?? '')?.[1]
  const isWhole = body.startsWith('{"id":')
  account.confirmed.add(isWhole ? body : `{"id":${id},${body.slice(1)}`)
}

/** Checks that the stored plants are exactly those of the answers. */
async function checkStored(service: TestService, account: Account): Promise<void> {
  const stored: string[] = []
  for (let after = ''; ; ) {
    const { body, headers } = await service.call({ path: `/plants?limit=1000${after}` })
    const plants = body.slice(1, -1).split(/(?<=\}),(?=\{"id":)/)
    stored.push(...plants.filter((plant) => plant !== ''))
    if (!headers.has('link')) break
    after = `&after=${/"id":(-?\d+)/.exec(plants.at(-1) ?? '')?.[1]}`
  }
  assert.deepEqual(
    stored.filter((plant) => !account.confirmed.has(plant)),
    [],
    'stored without an answer that says so',
  )
  assert.equal(stored.length, account.created - account.deleted)
}
