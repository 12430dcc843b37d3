import { flushCompileCache } from 'node:module'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { openService, type ServiceOptions, toStoreEvents } from '../../service.ts'
import { openStore } from '../../store/open.ts'
import type { Store } from '../../store/store.ts'
import { issueFirstToken } from '../../tokens/issue.ts'
import { expectShortLives } from '../memory.ts'
import { waitForSignal } from '../signals.ts'
import { noStore, requireExisting } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'
import { printToken } from '../tokens/print.ts'
import { openLogger } from './logger.ts'
import { explainPort, reservePort } from './port.ts'
import { describeStart, mayPrintToken, type Started, toListenUrl } from './welcome.ts'
import { joinWorkers } from './worker-metrics.ts'
import { disconnectWorker, isWorker, startWorkers } from './workers.ts'

export interface ServeFlags {
  readonly mustExist?: boolean
}

/** Runs the service until a signal stops it. */
export async function serve(
  { mustExist = false }: ServeFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  expectShortLives()
  if (mustExist) requireExisting(config)
  const socket = isWorker ? undefined : await reservePort(config)
  const logger = openLogger(config.logLevel, terminal.errors)
  let isNewStore = false
  const announce: Announce = async (store, url) => {
    const { label } = config.storeLocation
    if (isNewStore) logger.info({ store: label }, 'made a new, empty store: there was none')
    await announceStart(store, { url, isNewStore }, config, terminal)
  }

  function onNewStore(): void {
    if (mustExist) throw noStore(config)
    isNewStore = true
  }

  const { version } = terminal
  if (isWorker) {
    await serveAlone({ config, logger, version, joinProcesses: joinWorkers }, async () => {})
    disconnectWorker()
  } else if (config.workers === 1) {
    await serveAlone({ config, logger, version, socket, onNewStore }, announce)
  } else {
    // Each worker binds the port itself.
    socket?.close()
    await serveTogether(config, logger, announce, onNewStore)
  }
}

type Announce = (store: Store, url: string) => Promise<void>

async function serveAlone(options: ServiceOptions, announce: Announce): Promise<void> {
  const { config, logger } = options
  const service = await openService(options).catch((error) => {
    throw explainPort(error, config) ?? error
  })
  const signalled = waitForSignal(logger)
  try {
    if (!isWorker) logListening(logger, service.url, config)
    await announce(service.store, service.url)
  } catch (error) {
    await service.close()
    throw error
  }
  // Node writes the cache at exit. A service that is killed would leave none for the next start.
  flushCompileCache()
  // Ctrl-C stops quickly; after any other signal, a balancer gets time to notice.
  const grace = (await signalled) === 'SIGINT' ? 'hurry' : 'hold'
  const cut = await service.close(grace)
  if (cut === 0) logger.info('stopped: every accepted request was answered')
  else logger.warn(`stopped: ${cut} connections were cut because their clients did not finish`)
}

async function serveTogether(
  config: Config,
  logger: Logger,
  announce: Announce,
  onNewStore: () => void,
): Promise<void> {
  // Opened once before the workers start, so that an unusable store is reported once.
  const events = { ...toStoreEvents(logger), onNew: onNewStore }
  await (await openStore(config.storeLocation, events)).close()
  const workers = await startWorkers(config, logger)
  const { url } = workers
  if (url !== undefined) {
    try {
      logListening(logger, url, config)
      await withStore(config, (store) => announce(store, url))
    } catch (error) {
      await workers.stop()
      throw error
    }
  }
  await workers.ended
}

/** Prints the address and, on an empty store, the first token, unless a journal would keep it. */
async function announceStart(
  store: Store,
  started: Omit<Started, 'firstToken'>,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const print = (firstToken: string | undefined) =>
    terminal.print(describeStart({ ...started, firstToken }, config, terminal))
  const needsToken = config.operatorToken === undefined && mayPrintToken(config, terminal)
  // Made only now: a start that fails leaves no token that nobody has seen.
  const first = needsToken ? await issueFirstToken(store) : undefined
  if (first === undefined) await print(undefined)
  else await printToken(store, first, () => print(first.token))
}

function logListening(logger: Logger, url: string, config: Config): void {
  logger.info({ url: toListenUrl(url, config), store: config.storeLocation.label }, 'listening')
}
