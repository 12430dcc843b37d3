import { once } from 'node:events'
import { connect } from 'node:net'
import { operatorToken } from '../support/service.ts'

const methods = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'NOTHING',
  'CONNECT',
]
const versions = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/3.0', 'x']
const credentials = [`Bearer ${operatorToken}`, 'Bearer no-token', 'Basic x', '']
const bodies = ['', '{"id":1,"name":"x"}', '{"id":', '{"id":"1"}', 'x'.repeat(70_000)]

/** Many, because each has a bounded number of ports, and a closed one rests for a minute. */
const addresses = Array.from({ length: 50 }, (_, index) => `127.0.0.${index + 1}`)

/** Sends this many requests of every wrong kind, with paths, headers and bodies never seen before. */
export async function sendHostile(url: string, count: number, seed: number): Promise<void> {
  let state = seed
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const pick = <One>(from: readonly One[]) => from[random(from.length)] as One
  let left = count

  async function sendSome(): Promise<void> {
    while (left > 0) {
      left--
      const path = pick([
        `/plants/${random(2 ** 31)}`,
        `/plants?limit=${random(3_000)}`,
        `/${random(2 ** 31).toString(36)}`,
        '/plants',
        '/metrics',
        `/%${random(99)}`,
        'no-path',
      ])
      const body = pick(bodies)
      const head = [
        `${pick(methods)} ${path} ${pick(versions)}`,
        `Host: ${pick(['plants.test', '', 'a b'])}`,
        `Authorization: ${pick(credentials)}`,
        `X-${random(2 ** 31)}: ${random(2 ** 31)}`,
        `Content-Type: ${pick(['application/json', 'text/plain', ''])}`,
        `Content-Length: ${pick([body.length, body.length, '-1', 'x'])}`,
        'Connection: close',
      ].join('\r\n')
      await sendOne(`${head}\r\n\r\n${body}`)
    }
  }

  async function sendOne(text: string): Promise<void> {
    const { hostname, port } = new URL(url)
    const socket = connect({ port: Number(port), host: hostname, localAddress: pick(addresses) })
      .on('error', () => {})
      .resume()
    // Some clients leave before they have an answer.
    if (random(20) === 0) socket.end(text, () => socket.destroy())
    else socket.write(text)
    // A request without an answer is given up, on a busy machine, too, only after a while.
    socket.setTimeout(20_000, () => socket.destroy())
    if (!socket.closed) await once(socket, 'close')
  }

  await Promise.all(Array.from({ length: 64 }, sendSome))
}
