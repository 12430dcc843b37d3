/** A service under an experiment: asked over IPC for its port, its memory and the CPU time that it used. */
import { pino } from 'pino'
import { readConfig } from '../src/config.ts'
import { openService } from '../src/service.ts'

const [url = '', token = ''] = process.argv.slice(2)
const config = readConfig({}, { PORT: '0', PLANT_STORE_TOKEN: token, DATABASE_URL: url })
const service = await openService({ config, logger: pino({ level: 'silent' }) })

process.on('message', (question) => {
  const { user, system } = process.cpuUsage()
  if (question === 'cpu') process.send?.(user + system)
  else if (question === 'rss') process.send?.(process.memoryUsage.rss())
  else process.send?.({ port: Number(new URL(service.url).port) })
})
