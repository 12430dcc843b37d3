/** Scalar's mock server: answers with the examples of our document. */
import { readFileSync } from 'node:fs'
import { serve } from '@hono/node-server'
import { createMockServer } from '@scalar/mock-server'

const [path] = process.argv.slice(2)
const document = JSON.parse(readFileSync(path, 'utf8'))
const app = await createMockServer({ document })
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
  console.log(`address   http://127.0.0.1:${port}`),
)
