/** Plant Store on SQLite without its writer thread: every commit runs on the event loop. */
import { pino } from 'pino'
import { readConfig } from '../../src/config.ts'
import { openService } from '../../src/service.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'

const config = readConfig({}, process.env)
if (config.storeLocation.engine !== 'sqlite')
  throw new Error('DATABASE_URL must name a SQLite store.')
const store = buildSqliteStore(openConnection(config.storeLocation.path), { writer: 'in place' })
const { url } = await openService({ config, logger: pino({ level: 'silent' }), store })
console.log(`address   ${url}`)
