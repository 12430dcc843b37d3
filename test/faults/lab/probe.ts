import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { releaseAfterTest } from '../../support/release.ts'

/**
 * Good clients, each with a connection that it keeps, in a thread of their own: what they measure
 * is the service, and not how busy a test is.
 */
export function startClients(clients: number, url: string, headers: Record<string, string>) {
  const answers: { status: number; ms: number }[] = []
  const worker = new Worker(new URL(import.meta.url), { workerData: { clients, url, headers } })
  worker.on('message', (answer: (typeof answers)[number]) => answers.push(answer))
  const exited = once(worker, 'exit')
  const end = async () => {
    worker.postMessage('stop')
    await exited
  }
  releaseAfterTest(end)
  return {
    /** How many answers with 200 have come. */
    served: () => answers.filter(({ status }) => status === 200).length,
    /** The statuses of the other answers. */
    others: () => answers.map(({ status }) => status).filter((status) => status !== 200),
    /** Stops, and tells how long the answers took. */
    async stop(): Promise<string> {
      await end()
      const times = answers.map(({ ms }) => ms).sort((a, b) => a - b)
      const at = (part: number) => (times[Math.floor(times.length * part)] ?? 0).toFixed(1)
      return `${times.length} probes, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1 - 1e-9)} ms`
    },
  }
}

if (!isMainThread && workerData?.clients !== undefined) {
  let isStopped = false
  parentPort?.once('message', () => {
    isStopped = true
  })
  const ask = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (!isStopped) {
      const startedAt = performance.now()
      const sent = get(workerData.url, { headers: workerData.headers, agent })
      const [response] = await once(sent, 'response')
      await once(response.resume(), 'end')
      const ms = performance.now() - startedAt
      parentPort?.postMessage({ status: response.statusCode, ms })
      await sleep(20)
    }
    agent.destroy()
  }
  await Promise.all(Array.from({ length: workerData.clients }, ask))
}
