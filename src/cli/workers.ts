import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { toUrl } from '../service.ts'
import { openStore } from '../store/open.ts'
import { issueFirstToken } from '../tokens/issue.ts'
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

/** Several processes that serve one port, and what was made for them. */
export interface Workers {
  readonly url: string
  readonly firstToken: string | undefined
  /** Resolves when a signal came and every worker has ended. */
  readonly ended: Promise<void>
}

/** Prepares the store, starts the workers, and starts another whenever one dies. */
export async function startWorkers(config: Config, logger: Logger): Promise<Workers> {
  const firstToken = await prepareStore(config)
  const workers = new Set<Worker>()
  let isStopping = false

  function startWorker(): Worker {
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
    return worker
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
  const listening = Array.from({ length: config.workers }, () => once(startWorker(), 'listening'))
  const [[address]] = (await Promise.all(listening)) as [[{ address: string; port: number }]]
  return { url: toUrl(address), firstToken, ended }
}

// Once, before there are workers: a store that cannot be used is told once, and the first token printed once.
async function prepareStore(config: Config): Promise<string | undefined> {
  const store = await openStore(config.storeLocation)
  try {
    return config.operatorToken ? undefined : (await issueFirstToken(store))?.token
  } finally {
    await store.close()
  }
}
