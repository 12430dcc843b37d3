import { pino } from 'pino'
import { readConfig } from '../../../src/config.ts'
import { openService } from '../../../src/service.ts'

// The service with a short lease, so that another one takes over soon.
const service = await openService({
  config: readConfig({}, process.env),
  logger: pino({ level: process.env.LOG_LEVEL ?? 'silent' }),
  webhooks: { leaseMs: 600, renewMs: 200, pollMs: 50, retryDelaysMs: Array(10).fill(100) },
})
console.log(`address   ${service.url}`)
process.once('SIGINT', () => void service.close('short'))
