import { connect, createServer } from 'node:net'
import { releaseAfterTest } from '../support/release.ts'

/** When a connection is dropped: before or after the request is forwarded, or before the answer. */
export type Moment = 'before sending' | 'after forwarding' | 'before the answer'

export interface DroppingProxy {
  readonly url: string
  /** The first line of every request that came. */
  readonly requests: string[]
}

/**
 * A proxy before a service that asks for each request whether its connection is dropped, and when.
 * Each request must come in one piece. It is closed when the test ends.
 */
export async function openDroppingProxy(
  serviceUrl: string,
  choose: (request: string) => Moment | undefined,
): Promise<DroppingProxy> {
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
    service.on('data', (bytes) => {
      if (moment === 'before the answer') client.destroy()
      else client.write(bytes)
    })
    releaseAfterTest(() => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseAfterTest(() => server.close())
  const { port: ownPort } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${ownPort}`, requests }
}
