import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  copyCluster,
  findFreePort,
  newCluster,
  type PostgresServer,
  password,
  query,
  startServer,
} from '../../support/postgres.ts'
import { childrenOf, readProcess } from '../../support/processes.ts'
import { releaseAfterTest } from '../../support/release.ts'
import { waitUntil } from '../../support/wait.ts'

export type Replication = 'synchronous' | 'asynchronous'

export const database = 'postgres'

/** Starts a primary, and a standby on a cold copy of its folder. They are stopped with the test. */
export async function startPair(replication: Replication) {
  const folder = await newCluster()
  const copy = copyCluster(folder)
  const port = await findFreePort()
  const settings = { hot_standby: 'on', wal_retrieve_retry_interval: '200ms' }
  writeFileSync(join(copy, 'standby.signal'), '')
  const address = `host=127.0.0.1 port=${port} user=plants password='${password}'`
  const connection = `${address} application_name=standby`
  appendFileSync(
    join(copy, 'postgresql.auto.conf'),
    `primary_conninfo = '${connection.replaceAll("'", "''")}'\n`,
  )

  const names =
    replication === 'synchronous' ? { synchronous_standby_names: 'ANY 1 (standby)' } : {}
  const primary = await startServer(folder, { ...settings, ...names }, { port })
  releaseAfterTest(primary.stop)
  const standby = await startServer(copy, settings)
  releaseAfterTest(standby.stop)
  const streaming = "SELECT FROM pg_stat_replication WHERE state = 'streaming'"
  await waitUntil(
    async () => (await query(primary.toUrl(database), streaming)).length > 0,
    'the standby follows the primary',
  )
  // It names both.
  const url = primary
    .toUrl(database)
    .replace(/@.*\//, `@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/`)
  return { primary, standby, url }
}

/** Sends a signal to all processes of a server. */
export function signalServer({ process: { pid } }: PostgresServer, signal: NodeJS.Signals): void {
  signalProcesses(Number(pid), signal)
}

/** Sends a signal to a server's first process and its children, each in a group of its own. */
export function signalProcesses(pid: number, signal: NodeJS.Signals): void {
  for (const target of [pid, ...childrenOf(pid)]) {
    try {
      process.kill(target, signal)
    } catch {
      // The process has just ended.
    }
  }
}

/** Stops the processes that send the log to the standbys, given the server's first process. */
export function stallReplication(pid: number): void {
  const isSender = (child: number) => readProcess(child, 'cmdline').includes('walsender')
  for (const sender of childrenOf(pid).filter(isSender)) process.kill(sender, 'SIGSTOP')
}
