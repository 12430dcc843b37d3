import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { toUrl } from '../service.ts'
import { waitForSignal } from './signals.ts'

/** A worker that dies sooner than this after its start is started again only after a pause. */
const soonMs = 2_000
const pauseMs = 1_000

/** Whether this process is one of the workers, which serve, and not the one that watches them. */
export const isWorker = cluster.isWorker

/** Lets a worker end: the channel to the process that watches it would keep it alive. */
export function leave(): void {
  cluster.worker?.disconnect()
}

/** Several processes that serve one port. */
export interface Workers {
  /** Where they listen, when all of them do; undefined when a signal came before. */
  readonly url: string | undefined
  /** Resolves when a signal came and every worker has ended. */
  readonly ended: Promise<void>
}

/** Starts the workers, and starts another whenever one dies. */
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
      if (performance.now() - startedAt < soonMs) await sleep(pauseMs)
      if (!isStopping) startWorker()
    })
  }

  /** Resolves when as many listen as there should be, whichever had to be started again. */
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
    await waitForSignal(logger)
    isStopping = true
    const exits = [...workers].map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.process.kill('SIGTERM')
    await Promise.all(exits)
    logger.info('stopped: every worker has ended')
  }

  const ended = stop()
  const listening = waitUntilListening()
  for (let count = 0; count < config.workers; count++) startWorker()
  return { url: await Promise.race([listening, ended.then(() => undefined)]), ended }
}
