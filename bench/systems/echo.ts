/** The ceiling: JSON in, JSON out over bare node:http, with no store and no checks. */
import { createServer } from 'node:http'
import { pageSize, plantBody } from '../requests.ts'
import { announce } from './announce.ts'

const plant = JSON.parse(plantBody.replace('{id}', '100000000'))
const page = Array.from({ length: pageSize }, (_, index) => ({ ...plant, id: plant.id + index }))

const server = createServer((request, response) => {
  const answer = (value: unknown) => {
    const text = JSON.stringify(value)
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
    })
    response.end(text)
  }
  if (request.method === 'GET') return answer(request.url?.startsWith('/plants/') ? plant : page)
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (part: string) => {
    text += part
  })
  request.on('end', () => answer(JSON.parse(text)))
})
server.listen(0, '127.0.0.1', () => announce(server.address()))
