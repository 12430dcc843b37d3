import { pino } from 'pino'
import { readConfig } from '../../../src/config.ts'
import { openService } from '../../../src/service.ts'
import { openStore, type StoreLocation } from '../../../src/store/open.ts'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'
import type { Store } from '../../../src/store/store.ts'
import { isWrongdoing, spoil } from './wrong-stores.ts'

// The service as a process that can be killed, with one thing changed.
const change = process.argv[2] ?? ''
const config = readConfig({}, process.env)
const service = await openService({
  config,
  logger: pino({ level: process.env.LOG_LEVEL ?? 'silent' }),
  store: await openChanged(config.storeLocation),
})
process.stdout.write(`address   ${service.url}\n`)
process.once('SIGINT', () => void service.close('short'))

async function openChanged(location: StoreLocation): Promise<Store> {
  if (change === 'unsynced commits' && location.engine === 'sqlite') {
    const db = openConnection(location.path)
    db.exec('PRAGMA synchronous = NORMAL')
    return buildSqliteStore(db)
  }
  const store = await openStore(location)
  return isWrongdoing(change) ? spoil(store, change) : store
}
