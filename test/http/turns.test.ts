import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { buildTurns } from '../../src/http/node/turns.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket, toBytes } from '../support/wire.ts'

const pipelined = [0, 1, 2, 3, 4].map((at) => toBytes({ path: `/${at}` }))

describe('the turns of pipelined requests', () => {
  it('begin 16 postponed ones before other connections are read', async () => {
    const connections = 100
    const held: ServerResponse[] = []
    const begunInTurns: number[] = []
    let begun = 0
    const { receive } = buildTurns(
      ({ url }, response) => {
        // The request after it is postponed on every connection, at the same time.
        if (url === '/3') held.push(response)
        else response.end()
        if (url === '/4') begun++
      },
      () => assert.fail('too many wait'),
    )
    const server = createServer(receive).listen(0, '127.0.0.1')
    releaseAfterTest(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (let opened = 0; opened < connections; opened++) {
      openSocket(`http://127.0.0.1:${port}`).write(Buffer.concat(pipelined))
    }
    await waitUntil(() => held.length === connections, 'every connection has answers')
    for (const response of held) response.end()
    for (let before = 0; before < connections; before = begun) {
      await nextTurn()
      begunInTurns.push(begun - before)
    }
    assert.equal(Math.max(...begunInTurns), 16)
  })
})
