import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { toUrl } from '../../service.ts'
import { waitForSignal } from '../signals.ts'
import { shareMetrics } from './worker-metrics.ts'

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
export interface Workers {
  /** The address, once all workers listen; undefined where a signal came first. */
  readonly url: string | undefined
  /** Resolves after a signal, when every worker has exited. */
  readonly ended: Promise<void>
  /** Stops every worker without a signal. */
  stop(): Promise<void>
}

/** Starts the workers, and a new one whenever one dies. */
export async function startWorkers(config: Config, logger: Logger): Promise<Workers> {
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

  const ended = waitForSignal(logger).then(stop)
  const listening = waitUntilListening()
  shareMetrics()
  for (let count = 0; count < config.workers; count++) startWorker()
  return { url: await Promise.race([listening, ended.then(() => undefined)]), ended, stop }
}
