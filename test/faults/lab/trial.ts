import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { openStore, toStoreLocation } from '../../../src/store/open.ts'
import { newReceiver } from '../../../src/webhooks/receiver.ts'
import { waitUntil } from '../../support/wait.ts'
import { call } from '../../support/wire.ts'
import { openTestReceiver, type TestReceiver } from '../../webhooks/test-receiver.ts'
import { judge } from './checker.ts'
import { readFinalState } from './final-state.ts'
import {
  cleanTrial,
  type Delivery,
  type Evidence,
  inFlight,
  judgeTrial,
  type Period,
} from './follower-checker.ts'
import { countOutcomes, longestWaitMs, newHistory, waitForWrites } from './history.ts'
import { type LoadOptions, startLoad } from './load.ts'
import { type Mirror, startMirror } from './mirror.ts'
import { startProcess, token } from './service-process.ts'

export interface TrialOptions {
  readonly database: string
  /** How many services there are; one unless said otherwise. */
  readonly services?: number
  readonly clients?: Partial<Pick<LoadOptions, 'writers' | 'readers' | 'thinkMs'>>
  /** Short ones let another process take over webhooks soon. */
  readonly leases?: 'short'
  /** A long one lets clients and balancers notice a shutdown, however busy the machine is. */
  readonly grace?: 'long'
  /** How many files and connections each service may have open. */
  readonly descriptors?: number
}

const preload = {
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('preload.ts', import.meta.url))}`,
}

export type Trial = Awaited<ReturnType<typeof openTrial>>

/**
 * Starts services on one store, under load, with mirrors of each and a receiver of webhooks. A
 * test does something bad to them. Then all must be as if nothing had happened.
 */
export async function openTrial(options: TrialOptions) {
  const { database, services: count = 1, clients = {}, leases, grace, descriptors } = options
  const env = {
    ...preload,
    ...(leases === 'short' && { SHORT_LEASES: 'yes' }),
    ...(grace === 'long' && { LONG_GRACE: 'yes' }),
  }
  const { receiver, begin } = await addReceiver(database)
  const deliveries = noteDeliveries(receiver)
  const start = (port = 0) =>
    startProcess({ database, port, env, ...(descriptors !== undefined && { descriptors }) })
  const services = await Promise.all(Array.from({ length: count }, () => start()))
  const urls = services.map(({ url }) => url)
  const history = newHistory()
  const usual = { writers: 6, readers: 2, thinkMs: 5 }
  const load = startLoad(history, { urls, token, ...usual, ...clients })
  const faults: Period[] = []
  // On a busy machine, a short lease may end by itself, at any time.
  if (leases === 'short') {
    faults.push({ beganAt: 0, endedAt: Number.POSITIVE_INFINITY, mostTwice: inFlight })
  }
  const mirrors: Mirror[] = []
  const outputs = services.map(({ output }) => output)

  /** Resolves when both of the new mirrors are synced or told to wait. */
  async function follow(index: number): Promise<void> {
    const toUrl = () => services[index % services.length]?.url ?? assert.fail()
    const added = [startMirror(toUrl), startMirror(toUrl, begin)]
    mirrors.push(...added)
    await Promise.all(added.map(({ begun }) => begun))
  }

  /** Does something bad, after which some changes may arrive twice: those in flight, usually. */
  async function suffer(harm: () => Promise<unknown>, mostTwice = inFlight): Promise<void> {
    const beganAt = performance.now()
    await harm()
    faults.push({ beganAt, endedAt: performance.now(), mostTwice })
  }

  /** Puts a new service in the place of one that has ended. */
  async function replace(index: number, port?: number): Promise<void> {
    const service = await start(port)
    services[index] = service
    outputs.push(service.output)
  }

  /** Ends the load, and reads what a service has in the end. */
  async function collect(url = services[0]?.url ?? ''): Promise<Evidence> {
    await load.stop()
    const state = await readFinalState(url, token, history)
    const last = state.events.at(-1)?.position
    // What does not come is for the judge.
    await Promise.all([
      ...mirrors.map((mirror) => mirror.waitFor(last)),
      receiver.waitFor(state.events.length),
    ]).catch(() => {})
    return { history, state, mirrors: mirrors.map(({ seen }) => seen), deliveries, faults }
  }

  for (const index of services.keys()) void follow(index)
  return {
    receiver,
    services,
    /** Where the load writes: a test may change it. */
    urls,
    history,
    /** Adds two mirrors of a service: one from now on, and one from the beginning. */
    follow,
    suffer,
    replace,
    collect,
    /** Ends the load, and counts what was lost. */
    async countLost(): Promise<number> {
      await load.stop()
      return judge(history, await readFinalState(services[0]?.url ?? '', token, history)).lost
    },
    /** Kills a service, and starts it again on the same port. */
    async restart(index: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
      await suffer(async () => {
        const { url, end } = services[index] ?? assert.fail()
        await end(signal)
        await replace(index, Number(new URL(url).port))
      })
    },
    /** Sets the clock of a service back by an hour. */
    async setClockBack(index: number): Promise<void> {
      const { child, output } = services[index] ?? assert.fail()
      child.kill('SIGUSR2')
      await waitUntil(() => output().includes('the clock says'), 'the clock is set back')
    },
    /** Resolves when this many more writes are acknowledged. */
    writes: (more: number) => waitForWrites(history, more),
    /** Resolves when this many more requests have arrived at the receiver. */
    async arrivals(more: number): Promise<void> {
      const wanted = deliveries.length + more
      await waitUntil(() => deliveries.length >= wanted, `${more} changes arrive`)
    },
    isReady: (index: number) =>
      call(services[index]?.url ?? '', { path: '/readyz' }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    /**
     * Requires of each service that nothing was lost, invented or stale, and that mirrors and
     * receivers have every change, in order.
     */
    async requireClean(test: TestContext): Promise<void> {
      for (const { url } of services) {
        const evidence = await collect(url)
        const verdict = judgeTrial(evidence)
        const { length } = evidence.state.events
        test.diagnostic(
          JSON.stringify({
            ...countOutcomes(history),
            longestMs: longestWaitMs(history),
            events: length,
            twice: deliveries.length - length,
            ...verdict,
          }),
        )
        const isClean = isDeepStrictEqual(verdict, cleanTrial)
        for (const output of isClean ? [] : outputs) test.diagnostic(output())
        assert.deepEqual(verdict, cleanTrial)
      }
    },
  }
}

/** Opens a receiver and adds it to the store at this URL, for changes of every type. */
async function addReceiver(url: string) {
  const store = await openStore(toStoreLocation(url) ?? assert.fail())
  const receiver = await openTestReceiver()
  const types = ['plant.created', 'plant.replaced', 'plant.deleted'] as const
  const begin = await store.journalEnd()
  await store.receivers.add(newReceiver(receiver.url, types, begin))
  await store.close()
  return { receiver, begin }
}

/** Keeps what tells the deliveries apart; whole requests would take too much memory. */
function noteDeliveries(receiver: TestReceiver): Delivery[] {
  const deliveries: Delivery[] = []
  receiver.answer = ({ id, plantId, receivedAt }) => {
    deliveries.push({ id, plantId, receivedAt })
    receiver.received.length = 0
    return 200
  }
  return deliveries
}
