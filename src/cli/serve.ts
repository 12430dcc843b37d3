import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import { type Config, WrongConfig } from '../config.ts'
import { openService, type ServiceOptions, toStoreEvents } from '../service.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { firstTokenRequest, issueFirstToken, issueToken } from '../tokens/issue.ts'
import { type Call, type Printed, print } from './command.ts'
import type { serveFlags } from './flag-tables.ts'
import { inMemory, type ValuesOf } from './flags.ts'
import { tuneHeap } from './memory.ts'
import { waitForStop } from './signals.ts'
import { noStore, requireExisting, withStore } from './stores.ts'
import { type ErrorStream, toPrintable, toPrintableLines } from './terminal.ts'
import { describeStart, mayPrintToken, type Started, toListenUrl } from './welcome.ts'
import { disconnectWorker, isWorker, joinWorkers, startWorkers } from './workers.ts'

type ServeCall = Call<typeof serveFlags, 'service'>

/** Runs the service until a signal, or the end of its input if that is wanted, stops it. */
export async function serve(call: ServeCall): Promise<Printed> {
  const { config, terminal, flags } = call
  tuneHeap()
  requireServable(flags, config)
  const { mustExist = false, demo = false, untilStdinEnds = false } = flags
  if (!isWorker) await tryPort(config)
  const logger = openLogger(config.logLevel, terminal.errors)
  let isNewStore = false
  const announce: Announce = async (store, url) => {
    const { label } = config.storeLocation
    if (isNewStore) logger.info({ store: label }, 'made a new, empty store: there was none')
    await announceStart(store, { url, isNewStore, demo }, call)
  }

  function onNewStore(): void {
    if (mustExist) throw noStore(config)
    isNewStore = true
  }

  const { version } = terminal
  const input = untilStdinEnds ? terminal.input : undefined
  if (isWorker) {
    await serveAlone({ config, logger, version, joinProcesses: joinWorkers }, async () => {})
    disconnectWorker()
  } else if (config.workers === 1) {
    const store = demo ? { store: await openDemoStore(config) } : {}
    const options = { config, logger, version, onNewStore, ...store }
    await serveAlone(options, announce, input)
  } else await serveTogether(config, logger, announce, onNewStore, input)
  return {}
}

/** Refuses flags that do not suit the store. */
function requireServable(
  { workers, mustExist, demo }: ValuesOf<typeof serveFlags>,
  config: Config,
): void {
  const { label, engine, setting } = config.storeLocation
  if (demo && mustExist) throw new WrongConfig(['--demo makes a store: leave --must-exist out.'])
  if (demo && label !== inMemory) {
    throw new WrongConfig(['--demo keeps its plants in memory: leave --database out.'])
  }
  if (config.workers > 1 && engine === 'sqlite') {
    const name = workers === undefined ? 'WORKERS' : '--workers'
    throw new WrongConfig([
      `${name} above 1 needs PostgreSQL, because SQLite lets only one process write at a time. Set ${setting} to postgres://….`,
    ])
  }
  if (mustExist) requireExisting(config)
}

type Announce = (store: Store, url: string) => Promise<void>

/** Opens a store in memory, and fills it before the service starts. */
async function openDemoStore({ storeLocation, journalKeepMs }: Config): Promise<Store> {
  const journaling = journalKeepMs === 'off' ? 'off' : 'on'
  const store = await openStore(storeLocation, undefined, journaling)
  await store.importPlants(demoPlants, 'keep')
  return store
}

async function serveAlone(
  options: ServiceOptions,
  announce: Announce,
  input?: Readable,
): Promise<void> {
  const { config, logger } = options
  const service = await openService(options).catch((error) => {
    throw explainPort(error, config) ?? error
  })
  const stopped = waitForStop(logger, input)
  try {
    if (!isWorker) logListening(logger, service.url, config)
    await announce(service.store, service.url)
  } catch (error) {
    await service.close()
    throw error
  }
  // Node writes the cache at exit. A service that is killed would leave none for the next start.
  flushCompileCache()
  // Ctrl-C stops quickly; after SIGTERM and SIGHUP, a balancer gets time to notice.
  const grace = ['SIGTERM', 'SIGHUP'].includes(await stopped) ? 'full' : 'short'
  const cut = await service.close(grace)
  if (cut === 0) logger.info('stopped: every accepted request was answered')
  else logger.warn(`stopped: ${cut} connections were cut because their clients did not finish`)
}

async function serveTogether(
  config: Config,
  logger: Logger,
  announce: Announce,
  onNewStore: () => void,
  input?: Readable,
): Promise<void> {
  // Opened once before the workers start, so that an unusable store is reported once.
  const events = { ...toStoreEvents(logger), onNew: onNewStore }
  await (await openStore(config.storeLocation, events)).close()
  const workers = await startWorkers(config, logger, input)
  const { url } = workers
  if (url !== undefined) {
    try {
      logListening(logger, url, config)
      await withStore(config.storeLocation, (store) => announce(store, url))
    } catch (error) {
      await workers.stop()
      throw error
    }
  }
  await workers.ended
}

/** Prints the address and, on an empty store, the first token, unless systemd would keep it. */
async function announceStart(
  store: Store,
  { demo, ...started }: Omit<Started, 'firstToken'> & { readonly demo: boolean },
  { config, terminal }: ServeCall,
): Promise<void> {
  const describe = (firstToken: string | undefined) =>
    describeStart({ ...started, firstToken }, config, terminal)
  // The token of a demo is worthless after it, so systemd may keep it.
  const mayPrint = demo || mayPrintToken(config, terminal)
  const needsToken = config.operatorToken === undefined && mayPrint
  // Made only now, so that a failed start leaves no token that nobody has seen.
  const issue = () => (demo ? issueToken(store, firstTokenRequest) : issueFirstToken(store))
  const first = needsToken ? await issue() : undefined
  if (first === undefined) return terminal.print(describe(undefined))
  const undo = () => store.deleteTokens([first.record.id])
  await print({ text: describe(first.token), undo }, {}, terminal)
}

/** Their ids leave 1 free for the plant that the printed command stores. */
const demoPlants = [
  ['Monstera deliciosa', 'indoor'],
  ['Ficus lyrata', 'indoor'],
  ['Dracaena trifasciata', 'indoor'],
  ['Spathiphyllum wallisii', 'indoor'],
  ['Phalaenopsis amabilis', 'indoor'],
  ['Lavandula angustifolia', 'outdoor'],
  ['Hydrangea macrophylla', 'outdoor'],
  ['Acer palmatum', 'outdoor'],
  ['Helianthus annuus', 'outdoor'],
  ['Ocimum basilicum', 'herb'],
  ['Salvia rosmarinus', 'herb'],
  ['Ginkgo biloba'],
].map(([name = '', tag], index) => ({ id: 101n + BigInt(index), name, ...(tag && { tag }) }))

function logListening(logger: Logger, url: string, config: Config): void {
  logger.info({ url: toListenUrl(url, config), store: config.storeLocation.label }, 'listening')
}

/**
 * Tries the port before anything else is touched, as the local end of a connection to port 0, which
 * is always refused. Listening would let in clients that wait for the service, and cut them off.
 */
async function tryPort(config: Config): Promise<void> {
  const { port, host } = config
  try {
    const { address } = await lookup(host)
    const socket = connect({ port: 0, host: address, localPort: port, localAddress: address })
    await once(socket, 'connect', { signal: AbortSignal.timeout(tryMs) }).catch(rethrowUnbound)
    socket.destroy()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const mistake = `PORT ${port} on HOST ${host} cannot be used (${code}).`
    throw explainPort(error, config) ?? new WrongConfig([mistake])
  }
}

const tryMs = 1_000

function rethrowUnbound(error: NodeJS.ErrnoException): void {
  if (error.syscall === 'bind') throw error
}

/**
 * The reason why a port cannot be used, if the error has one. Of several services that try a port
 * at the same moment, only the first to listen gets it.
 */
function explainPort(error: unknown, config: Config): WrongConfig | undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  const mistake = portMistakes[code]?.(config)
  return mistake === undefined ? undefined : new WrongConfig([mistake])
}

const portMistakes: Record<string, (config: Config) => string> = {
  EADDRINUSE: ({ port, host }) =>
    `PORT ${port} on HOST ${host} is in use by another program; set PORT or --port to another one, or to 0 for a free one.`,
  EACCES: ({ port, host }) =>
    `PORT ${port} on HOST ${host} needs a privilege that this user lacks; set PORT or --port to 1024 or more.`,
  EADDRNOTAVAIL: ({ host }) =>
    `HOST ${host} is not an address of this machine; set HOST or --host to one that is.`,
  ENOTFOUND: ({ host }) =>
    `HOST ${host} is not a known host name; set HOST or --host to one that resolves.`,
}

/** How much of the log is held in memory while it cannot be written. */
const maxBacklogBytes = 1024 * 1024

/** Opens the log: readable lines on a terminal, JSON elsewhere. Neither has control characters. */
export function openLogger(level: string, output: ErrorStream): Logger {
  if (output.isTTY) {
    return pino({ level }, { write: (line) => output.write(toReadable(JSON.parse(line), output)) })
  }
  const hooks = { streamWrite: toPrintableLines }
  const file = pino.destination({ dest: output.fd ?? 2, sync: true, maxLength: maxBacklogBytes })
  // A full disk does not stop the service: lines are lost until there is space again.
  file.on('error', () => {})
  return pino({ level, hooks }, file)
}

type Style = Parameters<typeof styleText>[0]

const levelStyles: Readonly<Record<string, Style>> = {
  fatal: 'bgRed',
  error: 'red',
  warn: 'yellow',
  info: 'green',
  debug: 'blue',
  trace: 'gray',
}

/** An entry as one line, and the stack of its error below. */
function toReadable(entry: Record<string, unknown>, output: ErrorStream): string {
  const { level, time, pid, hostname, msg, err, ...members } = entry
  const { type, message, stack, ...details } = Object(err) as Record<string, unknown>
  if (stack === undefined && err !== undefined) members.err = err
  else if (Object.keys(details).length > 0) members.err = details
  const paint = (style: Style, text: string) =>
    styleText(style, toPrintable(text), { stream: output })
  const label = pino.levels.labels[Number(level)] ?? 'info'
  const parts = [
    `[${new Date().toISOString().slice(11, 19)}]`,
    `${paint(levelStyles[label] ?? 'green', label.toUpperCase())}:`,
    ...(msg === undefined ? [] : [paint('cyan', String(msg))]),
    ...(Object.keys(members).length === 0 ? [] : [paint('gray', JSON.stringify(members))]),
  ]
  const trace = stack === undefined ? [] : String(stack).split('\n')
  return [parts.join(' '), ...trace.map((line) => `    ${toPrintable(line)}`), ''].join('\n')
}
