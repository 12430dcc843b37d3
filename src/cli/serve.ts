import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import net, { createServer } from 'node:net'
import type { Logger } from 'pino'
import { type Config, WrongConfig } from '../config.ts'
import { openService } from '../service.ts'
import { issueFirstToken } from '../tokens/issue.ts'
import { openLogger } from './logger.ts'
import { waitForSignal } from './signals.ts'
import type { Terminal } from './terminal.ts'
import { describeStart, type Started } from './welcome.ts'
import { withStore } from './with-store.ts'
import { isWorker, leave, startWorkers } from './workers.ts'

/** Runs the service until a signal ends it. */
export async function serve(config: Config, terminal: Terminal): Promise<void> {
  if (!isWorker) await requireFreePort(config)
  const logger = await openLogger(config.logLevel, terminal.errors)
  const print = (started: Started) =>
    terminal.print(describeStart(started, config, terminal.version))
  if (isWorker) {
    await serveAlone(config, logger, () => {})
    leave()
  } else if (config.workers === 1) await serveAlone(config, logger, print)
  else await serveTogether(config, logger, print)
}

async function serveAlone(config: Config, logger: Logger, print: (started: Started) => void) {
  const service = await openService({ config, logger })
  const signalled = waitForSignal(logger)
  // Only now: a token that is made must also be printed, and a start that fails prints nothing.
  const needsToken = !isWorker && config.operatorToken === undefined
  const first = needsToken ? await issueFirstToken(service.store) : undefined
  print({ url: service.url, firstToken: first?.token })
  // Node would write it at the end: after a kill, the next start would be as slow as this one.
  flushCompileCache()
  // Who presses Ctrl-C wants it to end; who sends SIGTERM may have a balancer that has to notice.
  const grace = (await signalled) === 'SIGTERM' ? 'hold' : 'hurry'
  const cut = await service.close(grace)
  if (cut === 0) logger.info('stopped: every request that was accepted has been answered')
  else logger.warn(`stopped: ${cut} connections were cut, because their clients did not finish`)
}

async function serveTogether(config: Config, logger: Logger, print: (started: Started) => void) {
  // Once before there are workers: a store that cannot be used is told once.
  await withStore(config, async () => {})
  const { url, ended } = await startWorkers(config, logger)
  if (url !== undefined) {
    const first = config.operatorToken ? undefined : await withStore(config, issueFirstToken)
    print({ url, firstToken: first?.token })
  }
  await ended
}

// Before the store is opened, so that a start on a taken port leaves nothing behind.
async function requireFreePort({ port, host }: Config): Promise<void> {
  try {
    const { address } = await lookup(host)
    await tryPort(port, address)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = reasons[code ?? ''] ?? `cannot be used (${code})`
    throw new WrongConfig([`PORT ${port} on HOST ${host} ${reason}.`])
  }
}

/**
 * Takes a port and lets go of it. It does not listen: a client that waits for the service to come back would be let in,
 * and be reset when the port is let go of.
 */
async function tryPort(port: number, host: string): Promise<void> {
  if ('BoundSocket' in net) {
    new net.BoundSocket({ port, host }).close()
    return
  }
  // Node.js before 26.4 cannot but listen.
  const server = createServer().listen({ port, host })
  await once(server, 'listening')
  await new Promise((resolve) => server.close(resolve))
}

const reasons: Record<string, string> = {
  EADDRINUSE:
    'is in use by another program; set PORT or --port to another one, or to 0 for a free one',
  EACCES: 'needs a privilege that this user lacks; set PORT or --port to 1024 or more',
  EADDRNOTAVAIL: 'is not an address of this machine; set HOST or --host to one that is',
  ENOTFOUND: 'is not a host name that can be found; set HOST or --host to one that is',
}
