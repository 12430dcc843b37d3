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

/** A question for metrics, or its answer: between the primary process and its workers. */
interface Message {
  readonly request: number
  readonly metrics?: Metric[]
}

/** Asks other processes for their metrics, and takes their answers. */
function buildQuestions() {
  const waiting = new Map<number, (metrics: Metric[]) => void>()
  let requests = 0

  return {
    /** Resolves with undefined if there is no answer in time. */
    async ask(send: (question: Message) => void, timeoutMs: number): Promise<Metric[] | undefined> {
      const request = ++requests
      const { promise, resolve } = Promise.withResolvers<Metric[] | undefined>()
      const timer = setTimeout(resolve, timeoutMs, undefined)
      waiting.set(request, resolve)
      send({ request })
      const metrics = await promise
      clearTimeout(timer)
      waiting.delete(request)
      return metrics
    },
    settle(request: number, metrics: Metric[]): void {
      waiting.get(request)?.(metrics)
    },
  }
}

/** In a worker: answers the primary process, and asks it for the metrics of all workers. */
export function joinWorkers(collectOwn: Collect): Collect {
  const questions = buildQuestions()
  const send = (message: Message) => process.send?.(message)
  process.on('message', async ({ request, metrics }: Message) => {
    if (metrics === undefined) send({ request, metrics: await collectOwn() })
    else questions.settle(request, metrics)
  })

  return async () => {
    const metrics = await questions.ask(send, primaryTimeoutMs)
    if (metrics !== undefined) return metrics
    throw new Failure(50301, 'The metrics of the other processes did not arrive in time.')
  }
}

/** A worker may have died unnoticed. Without a callback, that would end the primary process. */
function send(worker: Worker, message: Message): void {
  worker.send(message, () => {})
}

/** In the primary process: collects the metrics of all workers for the one that asks. */
function shareMetrics(): void {
  const questions = buildQuestions()
  const latest = new Map<number, Metric[]>()
  /** The totals of workers that have ended. Without them the sums would fall. */
  let ended: Metric[] = []

  /** A worker that does not answer in time counts with its last metrics. */
  async function ask(worker: Worker): Promise<void> {
    const metrics = await questions.ask((message) => send(worker, message), workersTimeoutMs)
    if (metrics !== undefined) latest.set(worker.id, metrics)
  }

  cluster.on('message', async (worker, { request, metrics }: Message) => {
    if (metrics !== undefined) return questions.settle(request, metrics)
    const workers = Object.values(cluster.workers ?? {}).filter((one) => one?.isConnected())
    await Promise.all((workers as Worker[]).map(ask))
    const all = mergeMetrics([...latest.values(), ended])
    if (worker.isConnected()) send(worker, { request, metrics: all })
  })
  cluster.on('exit', ({ id }) => {
    ended = mergeMetrics([ended, toTotals(latest.get(id) ?? [])])
    latest.delete(id)
  })
}
