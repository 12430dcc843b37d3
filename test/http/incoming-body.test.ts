import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { beginReading, listenToBody, receiveBody } from '../../src/http/node/incoming-body.ts'

/** A request of which the parser of Node has passed on the head, and then this much of the body. */
function receive(chunks: number): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  request.method = 'POST'
  request.headers = { 'transfer-encoding': 'chunked' }
  receiveBody(request)
  for (let count = 0; count < chunks; count++) request.push(Buffer.from('x'))
  return request
}

describe('a body in small chunks that nobody reads yet', () => {
  it('is kept as one chunk', () => {
    const request = receive(10_000)
    beginReading(request)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    while (request.readableLength > 0) request.read()
    assert.deepEqual(chunks, [Buffer.alloc(10_000, 'x')])
  })

  it('is held up to 64 KiB before the connection is paused', () => {
    const request = receive(64 * 1024 - 2)
    assert.equal(request.push(Buffer.from('x')), true)
    assert.equal(request.push(Buffer.from('x')), false)
  })

  it('comes before the chunks that follow', () => {
    const request = receive(1_000)
    let received = ''
    listenToBody(request, {
      onChunk: (chunk) => {
        received += chunk
      },
      onEnd: () => {
        received += '.'
      },
      onLost: () => assert.fail('it is lost'),
    })
    request.push(Buffer.from('y'))
    request.push(null)
    assert.equal(received, `${'x'.repeat(1_000)}y.`)
  })
})
