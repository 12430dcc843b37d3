/** A service under the benchmark: asked over IPC for its port, its memory and the CPU time that it used. */
import { pino } from 'pino'
import postgres from 'postgres'
import { readConfig } from '../src/config.ts'
import { openService } from '../src/service.ts'
import { openPrimary } from '../src/store/postgres/connection.ts'
import { buildPostgresStore } from '../src/store/postgres/store.ts'
import { openConnection } from '../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../src/store/sqlite/store.ts'
import type { Store } from '../src/store/store.ts'

const [url = '', mode = '', token = ''] = process.argv.slice(2)
const config = readConfig({}, { PORT: '0', PLANT_STORE_TOKEN: token, DATABASE_URL: url })
const store = url.startsWith('sqlite:') ? openSqlite() : await openPostgres()
const service = await openService({ config, store, logger: pino({ level: 'silent' }) })

function openSqlite(): Store {
  const options = mode === 'grouped' ? {} : { batchWrites: 1 }
  return buildSqliteStore(openConnection(url.slice('sqlite:'.length)), options)
}

async function openPostgres(): Promise<Store> {
  const grouped = buildPostgresStore(await openPrimary(url, { onLost() {}, onFound() {} }))
  if (mode === 'grouped') return grouped
  // What people write: one statement for each request, over a pool of ten.
  const sql = postgres(url, { max: 10 })
  return {
    ...grouped,
    async createPlant({ id, name, tag = null }) {
      const rows = await sql`
        INSERT INTO plant_store.plants (id, name, tag, version)
        VALUES (${String(id)}::bigint, ${name}, ${tag}, 1) ON CONFLICT (id) DO NOTHING RETURNING id`
      return rows.length === 1 ? 1n : 'exists'
    },
  }
}

process.on('message', (question) => {
  const { user, system } = process.cpuUsage()
  if (question === 'cpu') process.send?.(user + system)
  else if (question === 'rss') process.send?.(process.memoryUsage.rss())
  else process.send?.({ port: Number(new URL(service.url).port) })
})
