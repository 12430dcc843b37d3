/** A receiver in a child process: answers /fast at once and /slow after 2 s, and counts. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

const slowMs = 2_000
let count = 0
let ids = new Set<string>()

const server = http.createServer((request, response) => {
  request.resume().on('end', () => {
    count++
    ids.add(String(request.headers['webhook-id']))
    if (request.url === '/slow') setTimeout(() => response.end(), slowMs)
    else response.end()
  })
})
server.listen(0, '127.0.0.1', () => {
  process.on('message', (question) => {
    if (question === 'port') process.send?.((server.address() as AddressInfo).port)
    else if (question === 'count') process.send?.(count)
    else {
      process.send?.(ids.size)
      if (question === 'clear') ids = new Set()
    }
  })
})
