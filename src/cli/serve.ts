import { createServer } from 'node:net'
import type { Logger } from 'pino'
import { type Config, standardDatabaseUrl, WrongConfig } from '../config.ts'
import { limits } from '../contract/limits.ts'
import { openService, type Service } from '../service.ts'
import { toLabel } from '../store/open.ts'
import { issueFirstToken } from '../tokens/issue.ts'
import { openLogger } from './logger.ts'
import type { Terminal } from './terminal.ts'

/** Two signals so close together are one: a terminal and npm both pass Ctrl-C on. */
const sameSignalMs = 100

/** Runs the service until a signal ends it. */
export async function serve(config: Config, terminal: Terminal): Promise<void> {
  await requireFreePort(config)
  const logger = await openLogger(config.logLevel, terminal.errors)
  const service = await openService({ config, logger })
  // Only now: a token that is made must also be printed, and a start that fails prints nothing.
  const first = config.operatorToken ? undefined : await issueFirstToken(service.store)
  const signalled = waitForSignal(logger)
  terminal.print(describe(service, config, first?.token, terminal.version))
  await signalled
  const emergency = setTimeout(() => process.exit(1), limits.shutdownMs + 500).unref()
  const cut = await service.close()
  clearTimeout(emergency)
  if (cut === 0) logger.info('stopped: every request that was accepted has been answered')
  else logger.warn(`stopped: ${cut} connections were cut, because their clients did not finish`)
}

// Before the store is opened, so that a start on a taken port leaves nothing behind.
async function requireFreePort({ port, host }: Config): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      const reason = reasons[code ?? ''] ?? `cannot be used (${code})`
      reject(new WrongConfig([`PORT ${port} on HOST ${host} ${reason}.`]))
    })
    server.listen({ port, host }, resolve)
  })
  await new Promise((resolve) => server.close(resolve))
}

const reasons: Record<string, string> = {
  EADDRINUSE:
    'is in use by another program; set PORT or --port to another one, or to 0 for a free one',
  EACCES: 'needs a privilege that this user lacks; set PORT or --port to 1024 or more',
  EADDRNOTAVAIL: 'is not an address of this machine; set HOST or --host to one that is',
  ENOTFOUND: 'is not a host name that can be found; set HOST or --host to one that is',
}

function describe(
  service: Service,
  config: Config,
  firstToken: string | undefined,
  version: string,
): string {
  const { url } = service
  const lines = [
    `Plant Store ${version}`,
    '',
    `  address   ${url}`,
    `  document  ${url}/openapi.json (to read: ${url}/docs)`,
    `  store     ${describeStore(config)}`,
  ]
  if (firstToken) lines.push(`  token     ${firstToken} (shown once; keep it)`)
  const token = firstToken ?? (config.operatorToken ? '$PLANT_STORE_TOKEN' : '$TOKEN')
  if (token === '$TOKEN') {
    lines.push(
      '',
      'Make a token:',
      '',
      `  TOKEN=$(npx plant-store token create --name me${toFlag(config)})`,
    )
  }
  // The first plant of a new store has the id 1; later, that one may be taken.
  const id = firstToken ? 1 : Math.trunc(Date.now() / 1000)
  lines.push('', 'Store a plant:', '', `  ${toCurl(url, token, id)}`, '')
  return lines.join('\n')
}

function describeStore({ storeLocation }: Config): string {
  const label = toLabel(storeLocation)
  const isLost = label === 'sqlite::memory:'
  return isLost ? `${label} (in memory: everything is lost when it stops)` : label
}

/** What another terminal has to say to mean the same store. */
function toFlag({ storeLocation }: Config): string {
  if (storeLocation.engine === 'postgres') return ' --database "$DATABASE_URL"'
  const label = toLabel(storeLocation)
  return label === standardDatabaseUrl ? '' : ` --database '${label}'`
}

function toCurl(url: string, token: string, id: number): string {
  const plant = `{"id":${id},"name":"Monstera deliciosa","tag":"indoor"}`
  return `curl ${url}/plants -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${plant}'`
}

function waitForSignal(logger: Logger): Promise<void> {
  return new Promise((resolve) => {
    let signalledAt: number | undefined
    function receive(signal: NodeJS.Signals): void {
      if (signalledAt === undefined) {
        signalledAt = performance.now()
        logger.info(
          `${signal}: answering what was accepted, then stopping; a second signal stops at once`,
        )
        resolve()
      } else if (performance.now() - signalledAt > sameSignalMs) process.exit(1)
    }
    process.on('SIGTERM', receive)
    process.on('SIGINT', receive)
  })
}
