import cluster from 'node:cluster'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { type Logger, pino } from 'pino'
import { type Config, defaultDatabaseUrl, readConfig, WrongConfig } from '../config.ts'
import { isLoopback } from '../contract/setting-values.ts'
import { openService, type ServiceOptions, toStoreEvents } from '../service.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { firstTokenRequest, issueFirstToken, issueToken } from '../tokens/issue.ts'
import type { Call, Printed } from './commands.ts'
import { inMemory } from './flags.ts'
import { waitForStop } from './signals.ts'
import { noStore, requireExisting, withStore } from './stores.ts'
import { type OutputStream, type Terminal, toPrintable, toPrintableLines } from './terminal.ts'
import { joinWorkers, startWorkers } from './workers.ts'

/** Runs the service until a signal, or the end of its input if that is wanted, stops it. */
export async function serve(call: Call<'serve'>): Promise<Printed> {
  const { terminal, flags, env } = call
  const { 'must-exist': mustExist, demo, 'until-stdin-ends': untilStdinEnds } = flags
  const config = readConfig({ ...(demo && { database: inMemory }), ...flags }, env)
  requireServable(flags, config)
  const { version } = terminal
  const logger = openLogger(config.logLevel, terminal.errors)
  if (cluster.isWorker) {
    await serveAlone({ config, logger, version, joinProcesses: joinWorkers }, async () => {})
    // Its channel to the primary process would keep it alive.
    cluster.worker?.disconnect()
    return {}
  }
  await tryPort(config).catch((error) => {
    const { code } = error as NodeJS.ErrnoException
    const mistake = `PORT ${config.port} on HOST ${config.host} cannot be used (${code}).`
    throw explainPort(error, config) ?? new WrongConfig([mistake])
  })
  let isNewStore = false

  function onNewStore(): void {
    if (mustExist) throw noStore(config)
    isNewStore = true
  }

  const announce: Announce = async (store, url) => {
    const { label } = config.storeLocation
    logger.info({ url: toListenUrl(url, config), store: label }, 'listening')
    if (isNewStore) logger.info({ store: label }, 'made a new, empty store: there was none')
    // The token of a demo is worthless after it, so systemd may keep it.
    const mayPrint = demo || mayPrintToken(config, terminal.output)
    const needsToken = config.operatorToken === undefined && mayPrint
    // Made only now, so that a failed start leaves no token that nobody has seen.
    const issue = () => (demo ? issueToken(store, firstTokenRequest) : issueFirstToken(store))
    const first = needsToken ? await issue() : undefined
    const text = describeStart({ url, firstToken: first?.token, isNewStore }, config, terminal)
    await terminal.print(text, async () => first && store.deleteTokens([first.record.id]))
  }

  const input = untilStdinEnds ? terminal.input : undefined
  const options = { config, logger, version, onNewStore }
  try {
    if (config.workers > 1) await serveTogether(options, announce, input)
    else if (!demo) await serveAlone(options, announce, input)
    else await serveAlone({ ...options, store: await openDemoStore(config) }, announce, input)
    return {}
  } finally {
    // An input that is read keeps the process alive.
    input?.pause()
  }
}

/** Refuses flags that do not suit the store. */
function requireServable(
  { workers, 'must-exist': mustExist, demo }: Call<'serve'>['flags'],
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
  { config, logger, onNewStore }: ServiceOptions & { readonly onNewStore: () => void },
  announce: Announce,
  input?: Readable,
): Promise<void> {
  async function start(store: Store): Promise<{ ended: Promise<void> }> {
    const workers = await startWorkers(config, logger, input)
    try {
      if (workers.url !== undefined) await announce(store, workers.url)
      return workers
    } catch (error) {
      await workers.stop()
      throw error
    }
  }

  // Opened before the workers start, so that an unusable store is reported once.
  const events = { ...toStoreEvents(logger), onNew: onNewStore }
  const { ended } = await withStore(config.storeLocation, start, events)
  await ended
}

/**
 * Whether a secret may be printed: a journal keeps it for many readers. On a desktop, programs
 * inherit JOURNAL_STREAM though they print to a terminal.
 */
export function mayPrintToken(
  { isUnderSystemd }: Config,
  { isTTY = false }: Pick<OutputStream, 'isTTY'>,
): boolean {
  return isTTY || !isUnderSystemd
}

/** A service that has just started. */
interface Started {
  /** An address of this machine, to paste. */
  readonly url: string
  readonly firstToken: string | undefined
  /** Whether this start has made the store. */
  readonly isNewStore?: boolean
}

/** The text that `serve` prints: where the service is, and a line to paste. */
export function describeStart(
  { url, firstToken, isNewStore = false }: Started,
  config: Config,
  { version, command }: Pick<Terminal, 'version' | 'command'>,
): string {
  const { host, publicUrl, workers, storeLocation, operatorToken, operatorTokenFile } = config
  const { label } = storeLocation
  const isInMemory = label === inMemory
  const state = isInMemory ? ' (in memory: everything is lost when it stops)' : ''
  const rows = {
    address: toListenUrl(url, config),
    warning: !isLoopback(host) && 'plain HTTP, open to other machines: put a TLS proxy in front',
    public: publicUrl,
    // The part after # stays in the browser.
    page: `${url}/${firstToken ? `#token=${firstToken}` : ''}`,
    document: `${url}/openapi.json (to read and try: ${url}/docs)`,
    store: `${label}${state}${isNewStore ? ' (new: there was none)' : ''}`,
    workers: workers > 1 && workers,
    token: firstToken && `${firstToken} (shown once; keep it)`,
  }
  const shown = Object.entries(rows).filter(([, value]) => value)
  // The token of the operator as a shell finds it, or the variable for a new one.
  const file = operatorTokenFile && `$(cat ${toShellWord(operatorTokenFile)})`
  const ofOperator = file ?? (operatorToken && '$PLANT_STORE_TOKEN')
  const token = firstToken ?? ofOperator ?? '$TOKEN'
  // The first plant of a new store has the id 1; later, that id may be taken.
  const id = firstToken ? 1 : Math.trunc(Date.now() / 1000)
  const plant = `{"id":${id},"name":"Monstera deliciosa","tag":"indoor"}`
  return [
    ...[`Plant Store ${version}`, ''],
    ...shown.map(([name, value]) => `  ${name.padEnd(8)}  ${value}`),
    ...(token === '$TOKEN' ? explainToken(config, command) : []),
    ...['', 'Store a plant:', ''],
    `  curl -w '\\n' ${url}/plants -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${plant}'`,
    '',
  ].join('\n')
}

/** How to get a token where none was printed. */
function explainToken({ storeLocation, isUnderSystemd }: Config, command: string): string[] {
  const { engine, label } = storeLocation
  if (label === inMemory) {
    const instead = 'unless PLANT_STORE_TOKEN_FILE names a file with one.'
    return ['', `A store in memory has no token ${instead}`]
  }
  // The flag by which a command in another terminal finds the same store.
  const address = engine === 'postgres' ? '"$DATABASE_URL"' : toShellWord(label)
  const flag = label === defaultDatabaseUrl ? '' : ` --database ${address}`
  const user = isUnderSystemd ? ', as the user that runs this service' : ''
  return ['', `Make a token${user}:`, '', `  TOKEN=$(${command} token create --name me${flag})`]
}

/** The address that the service listens on, which cannot be pasted if it is a wildcard. */
function toListenUrl(url: string, { host }: Config): string {
  const wildcard = { '0.0.0.0': '0.0.0.0', '::': '[::]' }[host]
  return wildcard === undefined ? url : `http://${wildcard}:${new URL(url).port}`
}

function toShellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
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

/**
 * Tries the port before anything else is touched, as the local end of a connection to port 0, which
 * is always refused. Listening would let in clients that wait for the service, and cut them off. Of
 * several services that try it at the same moment, only the first to listen gets it.
 */
async function tryPort({ port, host }: Config): Promise<void> {
  const { address } = await lookup(host)
  const socket = connect({ port: 0, host: address, localPort: port, localAddress: address })
  await once(socket, 'connect', { signal: AbortSignal.timeout(1_000) }).catch((error) => {
    if (error.syscall === 'bind') throw error
  })
  socket.destroy()
}

/** The reason why a port cannot be used, if the error has one. */
function explainPort(
  { code = '' }: NodeJS.ErrnoException,
  config: Config,
): WrongConfig | undefined {
  const mistake = portMistakes[code]?.(config)
  return mistake === undefined ? undefined : new WrongConfig([mistake])
}

const portMistakes: Record<string, (config: Config) => string> = {
  EADDRINUSE: ({ port, host }) =>
    `PORT ${port} on HOST ${host} is in use by another program, perhaps a Plant Store that already runs; set PORT or --port to another one, or to 0 for a free one.`,
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
export function openLogger(level: string, output: OutputStream): Logger {
  if (output.isTTY) {
    const write = (line: string) => output.write(toReadable(JSON.parse(line)))
    return pino({ level, base: null }, { write })
  }
  const hooks = { streamWrite: toPrintableLines }
  const file = pino.destination({ dest: output.fd ?? 2, sync: true, maxLength: maxBacklogBytes })
  // A full disk does not stop the service: lines are lost until there is space again.
  file.on('error', () => {})
  return pino({ level, hooks }, file)
}

/** An entry as one line, and the stack of its error below. */
function toReadable({ level, time, msg, ...members }: Record<string, unknown>): string {
  const { stack } = Object(members.err) as Partial<Error>
  const details = JSON.stringify(members, (key, value) => (key === 'stack' ? undefined : value))
  const label = pino.levels.labels[Number(level)]?.toUpperCase()
  const begin = `[${new Date(Number(time)).toISOString().slice(11, 19)}] ${label}: ${msg}`
  const line = details === '{}' ? begin : `${begin} ${details}`
  const trace = stack === undefined ? [] : stack.split('\n')
  return [toPrintable(line), ...trace.map((one) => `    ${toPrintable(one)}`), ''].join('\n')
}
