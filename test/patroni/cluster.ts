import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findMissing } from '../deploy/needs.ts'
import { type Replication, signalProcesses } from '../faults/lab/replication.ts'
import { killAfterTest } from '../support/child.ts'
import { newFolder } from '../support/folder.ts'
import {
  asUser,
  findFreePort,
  giveToServer,
  password,
  query,
  writeForServer,
} from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'

/** A PostgreSQL server and the Patroni that runs it. */
export interface Node {
  readonly name: string
  readonly folder: string
  readonly port: number
  /** Where Patroni answers. */
  readonly apiPort: number
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

interface Member {
  readonly name: string
  readonly role: string
}

/** Three, so that the loss of one leaves a leader with a synchronous standby. */
const names = ['node1', 'node2', 'node3']
/** The programs of PostgreSQL. The packages of npm lack pg_rewind and pg_basebackup. */
const programs =
  process.env.TEST_POSTGRES_BIN ?? globSync('/usr/lib/postgresql/*/bin').sort().at(-1) ?? ''

/** What is missing on this machine, in one line; false if nothing is. */
const missing = findMissing('patroni', 'etcd', join(programs, 'pg_rewind'))
export const clusterMissing = missing && `${missing} (apt install patroni etcd-server postgresql)`

/** The settings that docs/scaling.md recommends, so that they are what is tested. */
function readSettings(replication: Replication): string {
  const docs = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8')
  const settings = /```yaml\n(bootstrap:\n.*?)```/s.exec(docs)?.[1]
  if (settings === undefined) throw new Error('docs/scaling.md has no settings for Patroni')
  if (replication === 'synchronous') return settings
  return settings.replace(/^ *synchronous_mode.*\n/gm, '')
}

/** Starts three nodes and their etcd on 127.0.0.1. They are killed and removed with the test. */
export async function startCluster(replication: Replication) {
  const root = newFolder()
  // Patroni runs as another user where the tests run as root.
  chmodSync(root, 0o711)
  const etcd = await startEtcd(newNodeFolder(root, 'etcd'))
  const settings = readSettings(replication)
  const nodes: Node[] = []
  for (const name of names) {
    const [port, apiPort] = [await findFreePort(), await findFreePort()]
    const node = { name, folder: newNodeFolder(root, name), port, apiPort }
    writeForServer(join(node.folder, 'patroni.yml'), settings + toOwnSettings(node, etcd))
    nodes.push(node)
  }
  const running = new Map<Node, ChildProcess>()

  /** Starts Patroni, also on what a killed node left behind. */
  function start(node: Node): void {
    running.set(node, run('patroni', [join(node.folder, 'patroni.yml')], node.folder))
  }

  /** Kills Patroni and PostgreSQL of a node, as if its machine had failed. */
  function kill(node: Node): void {
    // Patroni dies first: without PostgreSQL, it would give up the leadership at once.
    running.get(node)?.kill('SIGKILL')
    const pid = findPid(node)
    if (pid !== undefined) signalProcesses(pid, 'SIGKILL')
  }

  async function readMembers(): Promise<Member[]> {
    for (const { apiPort } of nodes) {
      try {
        const answer = await fetch(`http://127.0.0.1:${apiPort}/cluster`)
        return ((await answer.json()) as { members: Member[] }).members
      } catch {
        // Another node knows the same.
      }
    }
    return []
  }

  function toLeader(members: readonly Member[]): Node | undefined {
    const leader = members.find(({ role }) => role === 'leader')
    return nodes.find(({ name }) => name === leader?.name)
  }

  /** The node that is the leader according to Patroni. */
  async function findLeader(): Promise<Node> {
    let leader: Node | undefined
    const isThere = async () => {
      leader = toLeader(await readMembers())
      return leader !== undefined
    }
    await waitUntil(isThere, 'Patroni has a leader')
    return leader as Node
  }

  async function isWhole(): Promise<boolean> {
    const members = await readMembers()
    const roles = members.map(({ role }) => role).sort()
    const second = replication === 'synchronous' ? 'sync_standby' : 'replica'
    if (roles.join() !== `leader,replica,${second}`) return false
    // A base backup streams as well, under another name than that of a node.
    const streaming = `SELECT FROM pg_stat_replication
      WHERE state = 'streaming' AND application_name IN ('${names.join("', '")}')`
    try {
      const standbys = await query(toAdminUrl(toLeader(members) as Node), streaming)
      return standbys.length === names.length - 1
    } catch {
      // The leader does not accept connections yet, or it is one no more.
      return false
    }
  }

  /** Waits until both standbys follow a leader, one of them synchronously if that is wanted. */
  async function waitUntilWhole(): Promise<void> {
    try {
      await waitUntil(isWhole, 'two standbys follow a leader')
    } catch (error) {
      throw new Error(nodes.map(readLog).join('\n'), { cause: error })
    }
  }

  /** Hands the leadership over to a standby, in good order. */
  async function switchOver(): Promise<void> {
    const { name, apiPort } = await findLeader()
    const answer = await fetch(`http://127.0.0.1:${apiPort}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader: name }),
    })
    if (answer.status !== 200) throw new Error(`no switchover: ${await answer.text()}`)
  }

  // PostgreSQL outlives a Patroni that is killed.
  releaseAfterTest(() => nodes.forEach(kill))
  nodes.forEach(start)
  await waitUntilWhole()
  const admin = toAdminUrl(await findLeader())
  await query(admin, `CREATE ROLE plants LOGIN PASSWORD '${password}'`)
  await query(admin, 'CREATE DATABASE plants OWNER plants')
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join()
  // All nodes, for a role that owns its database and nothing else.
  const url = `postgres://plants:${encodeURIComponent(password)}@${hosts}/plants`
  return { url, findLeader, switchOver, waitUntilWhole, kill, restart: start }
}

/** The first process of a node's PostgreSQL; undefined if it has none. */
export function findPid({ folder }: Node): number | undefined {
  const file = join(folder, 'data', 'postmaster.pid')
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : undefined
}

/** The end of what Patroni and PostgreSQL of a node have logged. */
function readLog({ name, folder }: Node): string {
  return `${name}:\n${readFileSync(join(folder, 'log'), 'utf8').slice(-5_000)}`
}

async function startEtcd(folder: string): Promise<string> {
  const [clients, peers] = [await findFreePort(), await findFreePort()]
  const [clientUrl, peerUrl] = [`http://127.0.0.1:${clients}`, `http://127.0.0.1:${peers}`]
  const options = {
    'data-dir': join(folder, 'data'),
    'listen-client-urls': clientUrl,
    'advertise-client-urls': clientUrl,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
  }
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  run('etcd', args, folder)
  const isHealthy = async () => {
    try {
      return (await fetch(`${clientUrl}/health`)).ok
    } catch {
      return false
    }
  }
  await waitUntil(isHealthy, 'etcd is healthy')
  return `127.0.0.1:${clients}`
}

/** The settings of one node, as JSON, which YAML includes. */
function toOwnSettings({ name, folder, port, apiPort }: Node, etcd: string): string {
  const account = (username: string) => ({ username, password })
  return Object.entries({
    scope: 'plants',
    name,
    etcd3: { host: etcd },
    restapi: { listen: `127.0.0.1:${apiPort}`, connect_address: `127.0.0.1:${apiPort}` },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: join(folder, 'data'),
      bin_dir: programs,
      pgpass: join(folder, 'pgpass'),
      authentication: {
        superuser: account('postgres'),
        replication: account('replicator'),
        rewind: account('rewind'),
      },
      // The path of a socket would be too long in some temporary folders.
      parameters: { unix_socket_directories: '', shared_buffers: '64MB' },
      pg_hba: [
        'host all all 127.0.0.1/32 scram-sha-256',
        'host replication all 127.0.0.1/32 scram-sha-256',
      ],
    },
  })
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
    .join('')
}

function toAdminUrl({ port }: Node): string {
  return `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`
}

function newNodeFolder(root: string, name: string): string {
  const folder = join(root, name)
  mkdirSync(folder, { mode: 0o700 })
  giveToServer(folder)
  return folder
}

/** Runs a program until the test ends, with its log in its folder. */
function run(program: string, args: string[], folder: string): ChildProcess {
  const log = openSync(join(folder, 'log'), 'a')
  const child = spawn(program, args, {
    ...asUser,
    cwd: folder,
    env: { ...process.env, HOME: folder },
    stdio: ['ignore', log, log],
  })
  killAfterTest(child)
  return child
}
