import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'
import { probe } from './probe.ts'

/** Probes the service that it is told of, and posts every answer, until it gets a message. */
let isStopped = false
parentPort?.once('message', () => {
  isStopped = true
})

/** A client that keeps its connection, as most do. */
async function runClient(): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  await probe(
    async () => {
      const [response] = await once(
        get(workerData.url, { ...workerData.options, agent }),
        'response',
      )
      response.resume()
      await once(response, 'end')
      return { status: response.statusCode }
    },
    (answer) => parentPort?.postMessage(answer),
    () => isStopped,
  )
  agent.destroy()
}

await Promise.all(Array.from({ length: workerData.clients }, runClient))
