/** Fastify with one route, which start times are compared with. */
import { fastify } from 'fastify'
import { announce } from './announce.ts'

const app = fastify()
app.get('/readyz', async () => ({ status: 'ready' }))
await app.listen({ port: 0, host: '127.0.0.1' })
announce(app.server.address())
