import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { scopes } from '../../../src/contract/scopes.ts'
import { openStore, toStoreLocation } from '../../../src/store/open.ts'
import { issueToken } from '../../../src/tokens/issue.ts'
import { releaseAfterTest } from '../../support/release.ts'
import { waitUntil } from '../../support/wait.ts'
import { call } from '../../support/wire.ts'
import { openClient } from './client.ts'
import { type FeedReader, followFeed } from './feed.ts'
import { parsePlants, readFinalState } from './final-state.ts'
import { type History, newHistory, noteAttempt } from './history.ts'
import { startLoad } from './load.ts'
import { addTestReceiver } from './receiver.ts'
import { type ServiceProcess, startProcess, token } from './service-process.ts'
import {
  type Copy,
  type Delivery,
  type Evidence,
  type Fault,
  type ProcessLife,
  revokedWithinMs,
  type Use,
} from './soak-judge.ts'

/** Where a soak runs, and what is done to it beside the kills of its services. */
export interface Site {
  readonly database: string
  readonly services: number
  restartDatabase?(): Promise<void>
  backUp?(): Promise<Copy['plants']>
}

/** How long a soak takes, and how busy it is. */
export interface Pace {
  /** The database restarts at the end of each period but the last; a service dies every second. */
  readonly periods: number
  readonly periodMs: number
  /** The pause of each client between two requests. */
  readonly thinkMs: number
}

/** In each period, on average. */
const leastWrites = 20
/** The plants of an import, with ids that the load does not use. */
const importLines = 50
const firstImported = 2n ** 40n

/** Runs services with all their features at once, and notes everything that they do. */
export async function soak(site: Site, { periods, periodMs, thinkMs }: Pace): Promise<Evidence> {
  const { database } = site
  const lives: ProcessLife[] = []
  const faults: Fault[] = []
  const services: ServiceProcess[] = []
  const started: ServiceProcess[] = []

  async function start(slot: number): Promise<void> {
    const port = Number(new URL(services[slot]?.url ?? 'http://a:0').port)
    // A log of every request would take the memory of the test.
    const service = await startProcess({ database, port, env: { LOG_LEVEL: 'warn' } })
    services[slot] = service
    started.push(service)
    lives.push({ slot, child: service.child, samples: [] })
  }

  /** Does something bad to the services. It lasts until all are ready again. */
  async function suffer(harm: () => Promise<void>): Promise<void> {
    const beganAt = performance.now()
    await harm()
    await Promise.all(services.map(({ url }) => waitForReady(url)))
    faults.push({ beganAt, endedAt: performance.now() })
  }

  // The first makes the store.
  for (let slot = 0; slot < site.services; slot++) await start(slot)
  const urls = services.map(({ url }) => url)
  const deliveries = noteDeliveries(await addTestReceiver(database))
  const user = await openUser(database)
  const uses = noteUses(urls, user.token)
  const revokedFeeds = urls.map((url) => followFeed(() => url, user.token))
  const feeds = urls.map((url) => followFeed(() => url, token))
  const history = newHistory()
  const load = startLoad(history, { urls, token, writers: 4, readers: 1, thinkMs })
  const copies = noteCopies(site, urls, periodMs)
  const stops = [startImports(history, urls, thinkMs * 20), copies.stop, sample(lives)]

  const startedAt = performance.now()
  let revoked: Evidence['revoked'] | undefined
  for (let period = 1; period <= periods; period++) {
    await sleep(Math.max(startedAt + period * periodMs - performance.now(), 0))
    if (period === periods) break
    const { restartDatabase } = site
    if (restartDatabase !== undefined) await suffer(restartDatabase)
    if (period % 2 === 1) continue
    const slot = (period / 2 - 1) % site.services
    await suffer(async () => {
      await services[slot]?.end('SIGKILL')
      await start(slot)
    })
    revoked ??= period >= periods / 2 ? await user.revoke() : undefined
  }

  assert.ok(revoked)
  const deadline = revoked.at + revokedWithinMs
  const isJudged = (slot: number) =>
    uses.uses.some((use) => use.slot === slot && use.sentAt > deadline)
  // A busy machine needs longer for enough evidence.
  const hasSeenEnough = () =>
    urls.every((_, slot) => isJudged(slot)) &&
    copies.copies.length >= periods &&
    history.acknowledgements >= leastWrites * periods
  await waitUntil(hasSeenEnough, 'enough is seen of writes, copies and the revoked token')
  for (const stop of stops) await stop()
  await load.stop()
  await uses.stop()
  const state = await readFinalState(urls[0] ?? '', token, history)
  const { events } = state
  // What does not come is for the judge.
  await Promise.all(feeds.map((feed) => feed.waitFor(events.at(-1)?.position))).catch(() => {})
  const isDelivered = () => new Set(deliveries.map(({ id }) => id)).size >= events.length
  await waitUntil(isDelivered, 'every change is delivered').catch(() => {})
  return {
    history,
    state,
    feeds: feeds.map(toEvents),
    deliveries,
    faults,
    copies: copies.copies,
    // A server lets transactions end in another order than they have in the journal.
    areCopiesMoments: site.restartDatabase === undefined,
    revoked,
    uses: uses.uses,
    revokedFeeds: revokedFeeds.map(toEvents),
    lives,
    logs: started.map(({ output }) => output()),
  }
}

const toEvents = ({ events }: FeedReader) => events

function waitForReady(url: string): Promise<void> {
  const isReady = () => call(url, { path: '/readyz' }).then(({ status }) => status === 200)
  return waitUntil(() => isReady().catch(() => false), `${url} is ready`)
}

/** Keeps what tells the deliveries apart; whole requests would take too much memory. */
function noteDeliveries(receiver: Awaited<ReturnType<typeof addTestReceiver>>): Delivery[] {
  const deliveries: Delivery[] = []
  receiver.answer = ({ id, plantId, receivedAt }) => {
    deliveries.push({ id, plantId, receivedAt })
    receiver.received.length = 0
    return 200
  }
  return deliveries
}

/** A token of the store, and a way to revoke it from outside of the services. */
async function openUser(database: string) {
  const location = toStoreLocation(database)
  assert.ok(location)
  const open = () => openStore(location)
  const store = await open()
  const issued = await issueToken(store, { name: 'user', scopes, lifetimeMs: undefined })
  await store.close()

  async function revoke(): Promise<Evidence['revoked']> {
    const store = await open()
    const outcome = await store.revokeToken(issued.record.id, Date.now())
    const revoked = { at: performance.now(), date: Date.now() }
    assert.equal(outcome, 'revoked')
    await store.close()
    return revoked
  }
  return { token: issued.token, revoke }
}

/** Repeats a task until it is stopped. The stop resolves when the last run has ended. */
function keepOn(task: () => Promise<void>, pauseMs: number): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  async function go(): Promise<void> {
    while (!signal.aborted) {
      await task()
      await sleep(pauseMs, undefined, { signal }).catch(() => {})
    }
  }
  const going = go()
  const stop = () => {
    stopping.abort()
    return going
  }
  releaseAfterTest(stop)
  return stop
}

/** Sends requests with a token to each service, over connections that are kept. */
function noteUses(urls: readonly string[], userToken: string) {
  const uses: Use[] = []
  const client = openClient(userToken)
  releaseAfterTest(client.close)
  const stops = urls.map((url, slot) =>
    keepOn(async () => {
      const sentAt = performance.now()
      const result = await client.send(`${url}/plants?limit=1`)
      if (typeof result !== 'string') uses.push({ slot, sentAt, status: result.status })
    }, 100),
  )
  return { uses, stop: () => Promise.all(stops.map((stop) => stop())) }
}

/** Takes exports of the services in turn, and backups where there are any. */
function noteCopies({ backUp }: Site, urls: readonly string[], periodMs: number) {
  const copies: Copy[] = []
  const client = openClient(token)
  releaseAfterTest(client.close)
  let taken = 0

  async function exportPlants(): Promise<Copy['plants'] | undefined> {
    const result = await client.send(`${urls[++taken % urls.length]}/plants.ndjson`)
    const isWhole = typeof result !== 'string' && result.status === 200
    return isWhole ? new Map(parsePlants(result.body)) : undefined
  }

  async function note(kind: Copy['kind'], copy: () => Promise<Copy['plants'] | undefined>) {
    const sentAt = performance.now()
    const plants = await copy()
    const answeredAt = performance.now()
    if (plants !== undefined) copies.push({ kind, sentAt, answeredAt, plants })
  }

  const stops = [keepOn(() => note('export', exportPlants), periodMs / 2)]
  if (backUp !== undefined) stops.push(keepOn(() => note('backup', backUp), periodMs))
  return { copies, stop: () => Promise.all(stops.map((stop) => stop())) }
}

/** Imports the same plants over and over with other names, and others after a lost answer. */
function startImports(history: History, urls: readonly string[], pauseMs: number) {
  const client = openClient(token)
  releaseAfterTest(client.close)
  let imports = 0
  let first = firstImported

  return keepOn(async () => {
    const form = imports++ % 2 === 0 ? 'ndjson' : 'csv'
    const attempts = Array.from({ length: importLines }, (_, line) => {
      const content = `plant of line ${line}, import ${imports}`
      return noteAttempt(history, { id: first + BigInt(line), kind: 'replace', content })
    })
    const lines = attempts.map(({ id, content }) =>
      form === 'csv' ? `${id},"${content}"\n` : `{"id":${id},"name":"${content}"}\n`,
    )
    const result = await client.send(
      `${urls[imports % urls.length]}/plants.${form}?on-conflict=replace`,
      {
        method: 'POST',
        headers: { 'Content-Type': form === 'csv' ? 'text/csv' : 'application/x-ndjson' },
        body: (form === 'csv' ? 'id,name\n' : '') + lines.join(''),
      },
    )
    const isReport = typeof result !== 'string' && result.status === 200
    const { stored = 0, replaced = 0 } = isReport ? JSON.parse(result.body) : {}
    const isDone = stored + replaced === importLines
    const outcome = isDone ? 'ok' : result === 'not sent' ? 'refused' : 'unknown'
    for (const attempt of attempts) {
      attempt.outcome = outcome
      attempt.answered = outcome === 'ok' ? attempt.content : undefined
      attempt.answeredAt = performance.now()
    }
    if (outcome === 'unknown') first += BigInt(importLines)
  }, pauseMs)
}

/** Notes the memory and the descriptors of the processes that run. */
function sample(lives: readonly ProcessLife[]): () => Promise<void> {
  return keepOn(async () => {
    for (const { child, samples } of lives) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      const rssMb = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
      // A process that was just killed has no memory, and is still there.
      if (!Number.isFinite(rssMb)) continue
      samples.push({ rssMb, descriptors: readdirSync(`/proc/${child.pid}/fd`).length })
    }
  }, sampleMs)
}

const sampleMs = 250
