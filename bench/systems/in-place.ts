/** Ours on SQLite as it would be without a thread for slow disks: every commit is made on the event loop. */
import { pino } from 'pino'
import { readConfig } from '../../src/config.ts'
import { openService } from '../../src/service.ts'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../src/store/sqlite/store.ts'

const config = readConfig({}, process.env)
if (config.storeLocation.engine !== 'sqlite') throw new Error('needs SQLite')
const store = buildSqliteStore(openConnection(config.storeLocation.path), { writer: 'in place' })
const { url } = await openService({ config, logger: pino({ level: 'silent' }), store })
console.log(`address   ${url}`)
