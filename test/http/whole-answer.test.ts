import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { joinFields } from '../../src/http/answer.ts'
import { sendWhole } from '../../src/http/node/bodies.ts'
import { openConnection } from '../../src/http/node/client-socket.ts'

const fields = ['X-Request-Id', 'abc-1', 'ETag', '"1"', 'Content-Type', 'application/json']

/** What a server sends for these bytes until it closes the connection. */
async function exchange(listener: RequestListener, sent: string): Promise<string> {
  const server = createServer(listener).on('checkContinue', listener).listen(0, '127.0.0.1')
  server.on('connection', (socket) => openConnection(socket, server.keepAliveTimeout))
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.end(sent)
  const answer = await text(socket.setEncoding('latin1'))
  await server[Symbol.asyncDispose]()
  return answer
}

const requests = {
  'HTTP/1.1': 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
  'two on one connection': 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2),
  'HTTP/1.0': 'GET / HTTP/1.0\r\n\r\n',
  'HTTP/1.0 that stays open': 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
  'the last on its connection': 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  HEAD: 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n',
  'a body': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab',
  'Expect that was not answered': 'GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n',
}

for (const [name, request] of Object.entries(requests)) {
  for (const [status, body] of [
    [200, '{"name":"Monstera"}'],
    [201, '{"name":"Fuchsie, grün"}'],
    [404, '{"code":40400}'],
  ] as const) {
    test(`An answer with ${status} to ${name} has the bytes that Node would send`, async () => {
      const bytes = Buffer.byteLength(body)
      const all = [...fields, 'Content-Length', String(bytes)]
      const onOwn: RequestListener = (_, response) => sendWhole(response, status, all, body, bytes)
      const onNode: RequestListener = (_, response) => response.writeHead(status, all).end(body)
      const listeners = [onOwn, onNode]
      const dated = /\r\nDate: ([^\r]+)/g
      const before = Math.floor(Date.now() / 1000) * 1000
      const [own = '', node] = await Promise.all(listeners.map((one) => exchange(one, request)))
      assert.match(own, /^HTTP\/1\.1 /)
      assert.equal(own.replace(dated, ''), node?.replace(dated, ''))
      const dates = [...own.matchAll(dated)].map(([, date = '']) => Date.parse(date))
      assert.ok(dates.length > 0 && dates.every((date) => date >= before && date <= Date.now()))
    })
  }
}

for (const value of ['a\r\nSet-Cookie: b', 'a\nb', 'a\rb', 'a\0', 'a\u010ab']) {
  test(`${JSON.stringify(value)} is not sent as a header`, () => {
    assert.throws(() => joinFields({ fields: [] }, { Link: value }), /The header Link/)
  })
}
