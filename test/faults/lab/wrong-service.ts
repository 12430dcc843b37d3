import { pino } from 'pino'
import { readConfig } from '../../../src/config.ts'
import { openService } from '../../../src/service.ts'
import { openStore } from '../../../src/store/open.ts'
import { type Spoiler, spoilers } from './wrong-stores.ts'

// The service with a store that is spoilt on purpose, as a process that can be killed.
const config = readConfig({}, process.env)
const store = spoilers[process.argv[2] as Spoiler](await openStore(config.storeLocation))
const { url } = await openService({ config, logger: pino({ level: 'silent' }), store })
process.stdout.write(`address   ${url}\n`)
