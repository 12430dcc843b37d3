import { connect } from 'node:net'
import { token } from '../requests.ts'

/** The answers to the creates of one run. */
export interface Tally {
  stored: number
  refused: number
  refusedWithoutRetryAfter: number
  other: number
  readonly latenciesMs: number[]
}

/**
 * Creates plants over kept connections, each sending its next request after an answer, until the
 * time or the ids are used up.
 */
export async function createPlants(
  port: number,
  nextId: () => number | undefined,
  { connections, forMs }: { connections: number; forMs: number },
): Promise<Tally> {
  const tally: Tally = {
    stored: 0,
    refused: 0,
    refusedWithoutRetryAfter: 0,
    other: 0,
    latenciesMs: [],
  }
  const endsAt = performance.now() + forMs

  function drive(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', send)
      let sentAt = 0
      socket.setNoDelay(true)
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.on('data', (bytes) => {
        const now = performance.now()
        tally.latenciesMs.push(now - sentAt)
        count(tally, bytes.toString('latin1'))
        if (now < endsAt) send()
        else socket.destroy()
      })
      function send(): void {
        const id = nextId()
        sentAt = performance.now()
        if (id === undefined) socket.destroy()
        else socket.write(toCreate(id))
      }
    })
  }

  await Promise.all(Array.from({ length: connections }, drive))
  return tally
}

function count(tally: Tally, answer: string): void {
  if (answer.startsWith('HTTP/1.1 200')) tally.stored++
  else if (answer.startsWith('HTTP/1.1 503')) {
    tally.refused++
    if (!/\r\nretry-after: \d/i.test(answer)) tally.refusedWithoutRetryAfter++
  } else tally.other++
}

function toCreate(id: number): string {
  const body = `{"id":${id},"name":"Monstera deliciosa","tag":"indoor"}`
  const head = [
    'POST /plants HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
