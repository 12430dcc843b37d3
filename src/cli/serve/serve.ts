import { flushCompileCache } from 'node:module'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { openService } from '../../service.ts'
import { issueFirstToken } from '../../tokens/issue.ts'
import { waitForSignal } from '../signals.ts'
import { withStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'
import { openLogger } from './logger.ts'
import { requireFreePort } from './port.ts'
import { describeStart, type Started } from './welcome.ts'
import { disconnectWorker, isWorker, startWorkers } from './workers.ts'

/** Runs the service until a signal stops it. */
export async function serve(config: Config, terminal: Terminal): Promise<void> {
  if (!isWorker) await requireFreePort(config)
  const logger = await openLogger(config.logLevel, terminal.errors)
  const print = (started: Started) =>
    terminal.print(describeStart(started, config, terminal.version))
  if (isWorker) {
    await serveAlone(config, logger, () => {})
    disconnectWorker()
  } else if (config.workers === 1) await serveAlone(config, logger, print)
  else await serveTogether(config, logger, print)
}

async function serveAlone(config: Config, logger: Logger, print: (started: Started) => void) {
  const service = await openService({ config, logger })
  const signalled = waitForSignal(logger)
  // The token is made only now: a start that fails prints nothing, and a token must be printed.
  const needsToken = !isWorker && config.operatorToken === undefined
  const first = needsToken ? await issueFirstToken(service.store) : undefined
  print({ url: service.url, firstToken: first?.token })
  // Node writes the cache at exit. A service that is killed would leave none for the next start.
  flushCompileCache()
  // Ctrl-C stops quickly; after SIGTERM, a balancer gets time to notice.
  const grace = (await signalled) === 'SIGTERM' ? 'hold' : 'hurry'
  const cut = await service.close(grace)
  if (cut === 0) logger.info('stopped: every accepted request was answered')
  else logger.warn(`stopped: ${cut} connections were cut because their clients did not finish`)
}

async function serveTogether(config: Config, logger: Logger, print: (started: Started) => void) {
  // Opened once before the workers start, so that an unusable store is reported once.
  await withStore(config, async () => {})
  const { url, ended } = await startWorkers(config, logger)
  if (url !== undefined) {
    const first = config.operatorToken ? undefined : await withStore(config, issueFirstToken)
    print({ url, firstToken: first?.token })
  }
  await ended
}
