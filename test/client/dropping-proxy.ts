import { connect, createServer } from 'node:net'
import { listen } from '../support/listen.ts'

/** When a connection is dropped: before or after the request is forwarded, or before the answer. */
export type Moment = 'before sending' | 'after forwarding' | 'before the answer'

/**
 * A proxy before a service that asks for each request whether its connection is dropped, and when.
 * `pass` may shorten what the service sends, and the connection ends there. Each request must come
 * in one piece. It is closed when the test ends.
 */
export async function openDroppingProxy(
  serviceUrl: string,
  choose: (request: string) => Moment | undefined,
  pass: (bytes: Buffer) => Buffer = (bytes) => bytes,
) {
  /** The first line of every request that came. */
  const requests: string[] = []
  const { hostname, port } = new URL(serviceUrl)
  const server = createServer((client) => {
    const service = connect(Number(port), hostname)
    let moment: Moment | undefined
    for (const socket of [client, service]) {
      socket.on('error', () => {})
      socket.setNoDelay(true)
    }
    client.on('close', () => service.end())
    service.on('close', () => client.destroy())
    client.on('data', (bytes) => {
      const request = bytes.toString('latin1')
      requests.push(request.slice(0, request.indexOf('\r\n')))
      moment = choose(request)
      if (moment !== 'before sending') service.write(bytes)
      if (moment === 'before sending' || moment === 'after forwarding') client.destroy()
    })
    service.on('data', (bytes: Buffer) => {
      if (moment === 'before the answer') return client.destroy()
      const passed = pass(bytes)
      if (passed === bytes) client.write(bytes)
      else client.end(passed)
    })
  })
  return { url: await listen(server), requests }
}
