/**
 * The baseline, as a good developer writes it in an afternoon: Fastify, schemas for bodies and
 * answers, one token, one statement per request. It is no TypeScript because the types of Fastify
 * are not there before the benchmark has run once.
 */
import { fastify } from 'fastify'
import { pageSize, token } from '../requests.ts'
import { announce } from './announce.ts'

const plantSchema = {
  type: 'object',
  required: ['id', 'name'],
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    tag: { type: 'string', nullable: true },
  },
}
const idSchema = { type: 'object', properties: { id: { type: 'integer' } } }
const pageSchema = {
  type: 'object',
  properties: {
    after: { type: 'integer', default: 0 },
    limit: { type: 'integer', minimum: 1, maximum: 1_000, default: pageSize },
  },
}

/**
 * Serves the statements on a free port, each in a transaction of its own. `insert` returns false if
 * the id is taken.
 */
export async function serveBaseline({ insert, find, list }) {
  const app = fastify()

  app.addHook('onRequest', async (request, reply) => {
    if (request.headers.authorization !== `Bearer ${token}`) {
      return reply.code(401).send({ message: 'a token is required' })
    }
  })

  app.post(
    '/plants',
    { schema: { body: plantSchema, response: { 201: plantSchema } } },
    async ({ body }, reply) => {
      if (!(await insert(body))) return reply.code(409).send({ message: 'the id is taken' })
      return reply.code(201).send(body)
    },
  )

  app.get(
    '/plants/:id',
    { schema: { params: idSchema, response: { 200: plantSchema } } },
    async ({ params }, reply) =>
      (await find(params.id)) ?? reply.code(404).send({ message: 'there is no such plant' }),
  )

  app.get(
    '/plants',
    {
      schema: { querystring: pageSchema, response: { 200: { type: 'array', items: plantSchema } } },
    },
    async ({ query }) => list(query.after, query.limit),
  )

  await app.listen({ port: 0, host: '127.0.0.1' })
  announce(app.server.address())
}
