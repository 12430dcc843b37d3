/** The baseline on PostgreSQL: one INSERT per request, over a pool of ten connections. */
import postgres from 'postgres'
import { serveBaseline } from './baseline-app.js'

const [url = ''] = process.argv.slice(2)
const bigint = { to: 20, from: [20], parse: Number, serialize: String }
const sql = postgres(url, { max: 10, types: { bigint } })
await sql`CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)`

await serveBaseline({
  async insert({ id, name, tag = null }) {
    const { count } = await sql`
      INSERT INTO plants (id, name, tag) VALUES (${id}, ${name}, ${tag}) ON CONFLICT DO NOTHING`
    return count === 1
  },
  async find(id) {
    const [plant] = await sql`SELECT id, name, tag FROM plants WHERE id = ${id}`
    return plant
  },
  list: (after, limit) => sql`
    SELECT id, name, tag FROM plants WHERE id > ${after} ORDER BY id LIMIT ${limit}`,
})
