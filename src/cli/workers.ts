import cluster, { type Worker } from 'node:cluster'
import { on, once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { type Metric, mergeMetrics, toTotals } from '../metrics/metric.ts'
import type { Collect } from '../metrics/metrics.ts'
import { toUrl } from '../service.ts'
import { waitForStop } from './signals.ts'

/** The pause before a worker that has died is replaced: the next may die of the same cause. */
const pauseMs = 1_000

/**
 * Starts several processes that serve one port, and a new one whenever one dies. `url` is undefined
 * if a signal comes before all of them listen. `ended` resolves after a signal or the end of the
 * input, when all of them have exited; `stop` stops them without a signal.
 */
export async function startWorkers(config: Config, logger: Logger, input?: Readable) {
  const listening = new Set<Worker>()
  let isStopping = false

  cluster.on('exit', async (worker, code, signal) => {
    listening.delete(worker)
    if (isStopping) return
    logger.error({ worker: worker.process.pid, code, signal }, 'a worker died: starting another')
    await sleep(pauseMs)
    if (!isStopping) cluster.fork()
  })

  /** Resolves when the configured number of workers listen, however many died before. */
  const allListen = new Promise<string>((resolve) => {
    cluster.on('listening', (worker, address) => {
      listening.add(worker)
      if (listening.size === config.workers) resolve(toUrl(address))
    })
  })

  async function stop(): Promise<void> {
    isStopping = true
    const workers = listWorkers()
    for (const worker of workers) worker.process.kill('SIGTERM')
    await Promise.all(workers.map((worker) => once(worker, 'exit')))
    logger.info('stopped: every worker has exited')
  }

  const ended = waitForStop(logger, input).then(stop)
  shareMetrics()
  for (let count = 0; count < config.workers; count++) cluster.fork()
  return { url: await Promise.race([allListen, ended.then(() => undefined)]), ended, stop }
}

/** The workers that have not exited. */
function listWorkers(): Worker[] {
  const workers = Object.values(cluster.workers ?? {})
  return workers.flatMap((worker) => (worker === undefined || worker.isDead() ? [] : worker))
}

/** How long the primary process waits for its workers, and a worker for the primary process. */
const workersTimeoutMs = 1_000
const primaryTimeoutMs = 3_000

/** A question for metrics, or its answer: between the primary process and its workers. */
interface Message {
  readonly request: number
  readonly metrics?: Metric[]
}

type Peer = Worker | NodeJS.Process

/** The other process may have died unnoticed. Without a callback, that would end this one. */
function send(to: Peer, message: Message): void {
  to.send?.(message, undefined, undefined, () => {})
}

let requests = 0

/** Asks another process for metrics. Resolves with undefined if it does not answer in time. */
async function ask(other: Peer, timeoutMs: number): Promise<Metric[] | undefined> {
  const request = ++requests
  const signal = AbortSignal.timeout(timeoutMs)
  const messages = on(other, 'message', { signal })
  send(other, { request })
  try {
    for await (const [message] of messages) {
      if (message.request === request && message.metrics !== undefined) return message.metrics
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return undefined
}

/** In a worker: answers the primary process, and asks it for the metrics of all workers. */
export function joinWorkers(collectOwn: Collect): Collect {
  process.on('message', async ({ request, metrics }: Message) => {
    if (metrics === undefined) send(process, { request, metrics: await collectOwn() })
  })

  return async () => {
    const metrics = await ask(process, primaryTimeoutMs)
    if (metrics !== undefined) return metrics
    throw new Failure(50301, 'The metrics of the other processes did not arrive in time.')
  }
}

/** In the primary process: collects the metrics of all workers for the one that asks. */
function shareMetrics(): void {
  const latest = new Map<number, Metric[]>()
  /** The totals of workers that have ended. Without them the sums would fall. */
  let ended: Metric[] = []

  /** A worker that does not answer in time counts with its last metrics. */
  async function askWorker(worker: Worker): Promise<void> {
    const metrics = await ask(worker, workersTimeoutMs)
    if (metrics !== undefined) latest.set(worker.id, metrics)
  }

  cluster.on('message', async (worker, { request, metrics }: Message) => {
    if (metrics !== undefined) return
    const connected = listWorkers().filter((one) => one.isConnected())
    await Promise.all(connected.map(askWorker))
    const all = mergeMetrics([...latest.values(), ended])
    if (worker.isConnected()) send(worker, { request, metrics: all })
  })
  cluster.on('exit', ({ id }) => {
    ended = mergeMetrics([ended, toTotals(latest.get(id) ?? [])])
    latest.delete(id)
  })
}
