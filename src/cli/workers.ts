import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import type { Metric } from '../metrics/metric.ts'
import { mergeMetrics, toTotals } from '../metrics/metric.ts'
import type { Collect } from '../metrics/metrics.ts'
import { toUrl } from '../service.ts'
import { waitForStop } from './signals.ts'

/** A worker that dies sooner than this after its start is replaced only after a pause. */
const earlyDeathMs = 2_000
const pauseMs = 1_000

/**
 * Whether this process is a worker, which serves, and not the primary process, which watches the
 * workers.
 */
export const isWorker = cluster.isWorker

/** Lets a worker exit: its channel to the primary process would keep it alive. */
export function disconnectWorker(): void {
  cluster.worker?.disconnect()
}

/** Several processes that serve one port. */
interface Workers {
  /** The address, once all workers listen; undefined where a signal came first. */
  readonly url: string | undefined
  /** Resolves after a signal or the end of the input, when every worker has exited. */
  readonly ended: Promise<void>
  /** Stops every worker without a signal. */
  stop(): Promise<void>
}

/** Starts the workers, and a new one whenever one dies. */
export async function startWorkers(
  config: Config,
  logger: Logger,
  input?: Readable,
): Promise<Workers> {
  const workers = new Set<Worker>()
  let isStopping = false

  function startWorker(): void {
    const startedAt = performance.now()
    const worker = cluster.fork()
    workers.add(worker)
    worker.on('exit', async (code, signal) => {
      workers.delete(worker)
      if (isStopping) return
      logger.error({ worker: worker.process.pid, code, signal }, 'a worker died: starting another')
      if (performance.now() - startedAt < earlyDeathMs) await sleep(pauseMs)
      if (!isStopping) startWorker()
    })
  }

  /** Resolves when the configured number of workers listen, however many died before. */
  function waitUntilListening(): Promise<string> {
    const listening = new Set<Worker>()
    return new Promise((resolve) => {
      cluster.on('listening', (worker, address) => {
        listening.add(worker)
        worker.once('exit', () => listening.delete(worker))
        if (listening.size === config.workers) resolve(toUrl(address))
      })
    })
  }

  async function stop(): Promise<void> {
    isStopping = true
    const exits = [...workers].map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.process.kill('SIGTERM')
    await Promise.all(exits)
    logger.info('stopped: every worker has exited')
  }

  const ended = waitForStop(logger, input).then(stop)
  const listening = waitUntilListening()
  shareMetrics()
  for (let count = 0; count < config.workers; count++) startWorker()
  return { url: await Promise.race([listening, ended.then(() => undefined)]), ended, stop }
}

/** How long the primary process waits for its workers, and a worker for the primary process. */
const workersTimeoutMs = 1_000
const primaryTimeoutMs = 3_000

/** The messages between a worker that is asked for the metrics, the primary and its workers. */
type Message =
  | { readonly metrics: 'of all'; readonly request: number }
  | { readonly metrics: 'of one'; readonly request: number }
  | { readonly metrics: readonly Metric[]; readonly request: number }

/** In a worker: answers the primary process, and asks it for the metrics of all workers. */
export function joinWorkers(collectOwn: Collect): Collect {
  const waiting = new Map<number, (metrics: Metric[]) => void>()
  let requests = 0

  process.on('message', (message: Message) => {
    if (message.metrics === 'of one') {
      collectOwn().then((metrics) => process.send?.({ ...message, metrics } satisfies Message))
    } else if (Array.isArray(message.metrics)) waiting.get(message.request)?.(message.metrics)
  })

  return () =>
    new Promise((resolve, reject) => {
      const request = ++requests
      const timer = setTimeout(() => {
        waiting.delete(request)
        reject(noAnswer())
      }, primaryTimeoutMs)
      waiting.set(request, (metrics) => {
        waiting.delete(request)
        clearTimeout(timer)
        resolve(metrics)
      })
      process.send?.({ metrics: 'of all', request } satisfies Message)
    })
}

/** In the primary process: collects the metrics of all workers for the one that asks. */
function shareMetrics(): void {
  const latest = new Map<number, readonly Metric[]>()
  const waiting = new Map<number, (workerId: number, metrics: readonly Metric[]) => void>()
  /** The totals of workers that have ended. Without them the sums would fall. */
  let ended: Metric[] = []
  let requests = 0

  async function collect(): Promise<Metric[]> {
    const request = ++requests
    const missing = new Set<number>()
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, workersTimeoutMs)
      waiting.set(request, (workerId, metrics) => {
        latest.set(workerId, metrics)
        missing.delete(workerId)
        if (missing.size > 0) return
        clearTimeout(timer)
        resolve()
      })
      for (const worker of connectedWorkers()) {
        missing.add(worker.id)
        worker.send({ metrics: 'of one', request } satisfies Message)
      }
    })
    waiting.delete(request)
    // A worker that does not answer in time counts with its last metrics.
    return mergeMetrics([...latest.values(), ended])
  }

  cluster.on('message', async (worker, message: Message) => {
    const { request } = message
    if (message.metrics === 'of all') {
      const metrics = await collect()
      if (worker.isConnected()) worker.send({ metrics, request } satisfies Message)
    } else if (Array.isArray(message.metrics)) waiting.get(request)?.(worker.id, message.metrics)
  })
  cluster.on('exit', ({ id }) => {
    ended = mergeMetrics([ended, toTotals(latest.get(id) ?? [])])
    latest.delete(id)
  })
}

function connectedWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter(
    (worker): worker is Worker => worker?.isConnected() === true,
  )
}

function noAnswer(): Failure {
  return new Failure(50301, 'The metrics of the other processes did not come in time.')
}
