/** A service under the benchmark: asked over IPC for its port and for the CPU time that it used. */
import { pino } from 'pino'
import { readConfig } from '../src/config.ts'
import { openService } from '../src/service.ts'
import { openConnection } from '../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../src/store/sqlite/store.ts'

const [path = '', batchWrites = '1', token = ''] = process.argv.slice(2)
const store = buildSqliteStore(openConnection(path), { batchWrites: Number(batchWrites) })
const config = readConfig({}, { PORT: '0', PLANT_STORE_TOKEN: token })
const service = await openService({ config, store, logger: pino({ level: 'silent' }) })

process.on('message', (question) => {
  const { user, system } = process.cpuUsage()
  process.send?.(question === 'cpu' ? user + system : { port: Number(new URL(service.url).port) })
})
