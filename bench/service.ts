/** A service under test, which tells its parent its port, its memory and its CPU time over IPC. */
import { pino } from 'pino'
import { tuneHeap } from '../src/cli/memory.ts'
import { readConfig } from '../src/config.ts'
import { openService } from '../src/service.ts'
import { token } from './requests.ts'

// As `serve` does.
tuneHeap()
const [url = '', settings = '{}'] = process.argv.slice(2)
const env = { PORT: '0', PLANT_STORE_TOKEN: token, DATABASE_URL: url, ...JSON.parse(settings) }
const config = readConfig({}, env)
const service = await openService({ config, logger: pino({ level: 'silent' }) })

process.on('message', (question) => {
  const { user, system } = process.cpuUsage()
  if (question === 'cpuUs') process.send?.(user + system)
  else if (question === 'rssMb') process.send?.(process.memoryUsage.rss() / 1024 ** 2)
  else process.send?.(Number(new URL(service.url).port))
})
