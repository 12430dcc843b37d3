import cluster, { type Worker } from 'node:cluster'
import { Failure } from '../../contract/errors.ts'
import { mergeMetrics, toTotals } from '../../metrics/merge.ts'
import type { Metric } from '../../metrics/metric.ts'
import type { Collect } from '../../metrics/metrics.ts'

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
export function shareMetrics(): void {
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
