import { pino } from 'pino'
import { readConfig } from '../../../src/config.ts'
import { openService } from '../../../src/service.ts'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'

// The service as on a slow disk, whatever the disk is like: all commits run in a thread.
const config = readConfig({}, process.env)
if (config.storeLocation.engine !== 'sqlite') throw new Error('needs SQLite')
const service = await openService({
  config,
  logger: pino({ level: 'silent' }),
  store: buildSqliteStore(openConnection(config.storeLocation.path), { writer: 'thread' }),
})
console.log(`address   ${service.url}`)
process.once('SIGINT', () => void service.close('short'))
