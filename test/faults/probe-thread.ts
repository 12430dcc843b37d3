import { parentPort, workerData } from 'node:worker_threads'
import { call } from '../support/wire.ts'
import { probe } from './probe.ts'

/** Probes the service that it is told of, and posts every answer, until it gets a message. */
let isStopped = false
parentPort?.once('message', () => {
  isStopped = true
})
await probe(
  () => call(workerData.url, workerData.request),
  (answer) => parentPort?.postMessage(answer),
  () => isStopped,
)
