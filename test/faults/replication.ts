import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  newCluster,
  newDataFolder,
  type PostgresServer,
  password,
  query,
  startServer,
} from '../support/postgres.ts'

export type Replication = 'synchronous' | 'asynchronous'

/** A primary and a standby that follows it, on one machine. */
export interface Pair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** The address that names both. */
  readonly url: string
  stop(): Promise<void>
}

const database = 'plants'

/** Starts a primary, makes a standby of a cold copy of its folder, and starts both. */
export async function startPair(replication: Replication): Promise<Pair> {
  const folder = await newCluster()
  const settings = { hot_standby: 'on', wal_retrieve_retry_interval: '200ms' }
  const first = await startServer(folder, settings)
  await query(first.toUrl('postgres'), `CREATE DATABASE ${database}`)
  first.process.kill('SIGINT')
  await once(first.process, 'exit')

  const copy = newDataFolder()
  cpSync(folder, copy, { recursive: true, preserveTimestamps: true })
  takeOver(dirname(copy), dirname(folder))
  writeFileSync(join(copy, 'standby.signal'), '')
  const connection = `host=127.0.0.1 port=${first.port} user=plants password='${password}' application_name=standby`
  appendFileSync(
    join(copy, 'postgresql.auto.conf'),
    `primary_conninfo = '${connection.replaceAll("'", "''")}'\n`,
  )

  const names =
    replication === 'synchronous' ? { synchronous_standby_names: 'ANY 1 (standby)' } : {}
  const primary = await startServer(folder, { ...settings, ...names }, { port: first.port })
  const standby = await startServer(copy, settings)
  while (
    (
      await query(
        primary.toUrl(database),
        "SELECT FROM pg_stat_replication WHERE state = 'streaming'",
      )
    ).length === 0
  ) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const url = primary
    .toUrl(database)
    .replace(/@.*\//, `@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/`)
  return {
    primary,
    standby,
    url,
    async stop() {
      await Promise.all([primary, standby].map((server) => server.stop()))
    },
  }
}

/** Sends a signal to a server and to all of its processes, which are in groups of their own. */
export function signalServer({ process: { pid } }: PostgresServer, signal: NodeJS.Signals): void {
  for (const target of [Number(pid), ...childrenOf(Number(pid))]) {
    try {
      process.kill(target, signal)
    } catch {
      // It has just ended.
    }
  }
}

/** Stops the process that sends the log to the standby. */
export function stallReplication({ process: { pid } }: PostgresServer): void {
  const isSender = (child: number) =>
    readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('walsender')
  for (const sender of childrenOf(Number(pid)).filter(isSender)) process.kill(sender, 'SIGSTOP')
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1] === String(parent)
        )
      } catch {
        return false
      }
    })
}

// A copy that root makes belongs to root; the server that uses it runs as somebody else.
function takeOver(folder: string, like: string): void {
  spawnSync('chown', ['-R', `--reference=${like}`, folder])
}
