import { describe, it } from 'node:test'
import { authorized, json, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const upgrade = { Connection: 'Upgrade', Upgrade: 'h2c' }

describe('a request for an upgrade', () => {
  it('is answered as any other, with its body, and its connection is kept', async () => {
    const service = await startService('sqlite::memory:')
    const socket = openSocket(service.url)
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk
    })
    const headers = { ...json, ...upgrade }
    const body = '{"id":1,"name":"Fern"}'
    const get = { path: '/plants/1', headers: { ...authorized, ...upgrade } }
    const requests = [{ method: 'POST', path: '/plants', headers, body }, get, get]
    for (const [at, request] of requests.entries()) {
      socket.write(toBytes(request))
      const answers = () => received.match(/(?<=HTTP\/1\.1 )200 OK[\s\S]*?Fern"}/g) ?? []
      await waitUntil(() => answers().length > at, `answer ${at}`)
    }
  })
})
