import { pino } from 'pino'
import { readConfig } from '../../../src/config.ts'
import { openService } from '../../../src/service.ts'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'

// The service on a store that does not sync its commits, which a power cut must reveal.
const config = readConfig({}, process.env)
if (config.storeLocation.engine !== 'sqlite') throw new Error('needs SQLite')
const db = openConnection(config.storeLocation.path)
db.exec('PRAGMA synchronous = NORMAL')
const service = await openService({
  config,
  logger: pino({ level: 'silent' }),
  store: buildSqliteStore(db),
})
console.log(`address   ${service.url}`)
process.once('SIGINT', () => void service.close('short'))
