import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { releaseAfterTest } from '../../support/release.ts'

/** An answer that a probe got, and how long it took. */
export interface Probed {
  readonly status: number
  readonly ms: number
}

/** Sends one request after the other, as a good client does, until it is stopped. */
export function startProbe(ask: () => Promise<{ readonly status: number }>) {
  const answers: Probed[] = []
  let isStopped = false
  const running = probe(
    ask,
    (answer) => answers.push(answer),
    () => isStopped,
  )
  return watch(answers, () => {
    isStopped = true
    return running
  })
}

/**
 * Many such clients, each with a connection that it keeps, in a thread of their own: what they
 * measure is the service, and not how busy a test is.
 */
export function startClients(clients: number, url: string, headers: Record<string, string>) {
  const answers: Probed[] = []
  const worker = new Worker(new URL('./probe-thread.ts', import.meta.url), {
    workerData: { clients, url, options: { headers } },
  })
  worker.on('message', (answer: Probed) => answers.push(answer))
  const exited = once(worker, 'exit')
  return watch(answers, () => {
    worker.postMessage('stop')
    return exited
  })
}

/** Asks over and over, with a short pause after each answer. */
export async function probe(
  ask: () => Promise<{ readonly status: number }>,
  take: (answer: Probed) => void,
  isStopped: () => boolean,
): Promise<void> {
  while (!isStopped()) {
    const startedAt = performance.now()
    const { status } = await ask()
    take({ status, ms: performance.now() - startedAt })
    await sleep(20)
  }
}

function watch(answers: readonly Probed[], end: () => Promise<unknown>) {
  releaseAfterTest(end)
  return {
    /** The statuses of all answers. */
    statuses: () => [...new Set(answers.map(({ status }) => status))],
    /** How many answers have come. */
    count: () => answers.length,
    /** Stops, and tells how long the answers took. */
    async stop(): Promise<string> {
      await end()
      const times = answers.map(({ ms }) => ms).sort((a, b) => a - b)
      const at = (part: number) => (times[Math.floor(times.length * part)] ?? 0).toFixed(1)
      return `${times.length} probes, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1 - 1e-9)} ms`
    },
  }
}
