import { connect } from 'node:net'

/** Creates plants over every connection until the time is over; answers the id after the last one. */
export async function createPlants(
  port: number,
  token: string,
  firstId: number,
  { connections, forMs }: { connections: number; forMs: number },
): Promise<number> {
  let id = firstId
  const end = performance.now() + forMs

  function drive(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', send)
      socket.setNoDelay(true)
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.on('data', (bytes) => {
        if (!bytes.toString('latin1', 0, 12).endsWith('200')) reject(new Error(bytes.toString()))
        if (performance.now() < end) send()
        else socket.destroy()
      })
      function send(): void {
        const body = `{"id":${id++},"name":"Monstera deliciosa","tag":"indoor"}`
        socket.write(
          `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        )
      }
    })
  }

  await Promise.all(Array.from({ length: connections }, drive))
  return id
}
