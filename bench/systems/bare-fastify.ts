/** What starting costs at least: Fastify with one route. */
import fastify from 'fastify'
import { announce } from './announce.ts'

const app = fastify()
app.get('/readyz', async () => ({ status: 'ready' }))
await app.listen({ port: 0, host: '127.0.0.1' })
announce(app.server.address())
