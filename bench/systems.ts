import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../test/support/postgres.ts'
import type { Lab, Server } from './lab.ts'
import { pageSize, type Requests, seedCount, toRequests, toSeeds } from './requests.ts'
import { serveBaseline, servePlantStore, toPath } from './serve.ts'
import { startPocketBase } from './systems/pocketbase.ts'

/** A running system and the requests that it understands. */
export interface System {
  readonly name: SystemName
  readonly server: Server
  /** The processes whose CPU time counts as the system's, with all their descendants. */
  readonly pids: readonly number[]
  readonly requests: Requests
}

/** A system that can be compared, and which of Plant Store's duties it performs. */
export interface Kind {
  readonly title: string
  readonly duties: {
    readonly stores: string
    readonly syncs: string
    readonly checksToken: string
    readonly checksBody: string
  }
  start(lab: Lab): Promise<Omit<System, 'name'>>
}

const document = toPath('../openapi.json')
const seedConnections = 64
const noDuties = { stores: 'no', syncs: 'no', checksToken: 'no', checksBody: 'no' }
const allDuties = { stores: 'yes', syncs: 'yes', checksToken: 'yes', checksBody: 'yes' }
const mockDuties = {
  stores: 'no; a page is one plant',
  syncs: 'no',
  checksToken: 'any token passes',
  checksBody: 'yes',
}

/** A system that performs every duty. */
function toDurable(title: string, start: Kind['start']): Kind {
  return { title, duties: allDuties, start }
}

/** Every system, in the order of the tables. */
export const kinds = {
  echo: {
    title: 'bare echo',
    duties: noDuties,
    async start(lab) {
      const server = await lab.serve({ args: [toPath('systems/echo.ts')] })
      return { server, pids: [server.pid], requests: toRequests(seedCount, 200) }
    },
  },
  'ours-sqlite': toDurable('Plant Store, SQLite', (lab) =>
    startOnSqlite(lab, 'ours', servePlantStore, 200),
  ),
  'baseline-sqlite': toDurable('baseline, SQLite', (lab) =>
    startOnSqlite(lab, 'baseline', serveBaseline, 201),
  ),
  'ours-postgres': toDurable('Plant Store, PostgreSQL', (lab) =>
    startOnPostgres(lab, 'ours', servePlantStore, 200),
  ),
  'baseline-postgres': toDurable('baseline, PostgreSQL', (lab) =>
    startOnPostgres(lab, 'baseline', serveBaseline, 201),
  ),
  'json-server': {
    title: 'json-server 0.17.4',
    duties: { ...noDuties, stores: 'rewrites its file on each change' },
    async start(lab) {
      const path = join(lab.folder, 'json-server.json')
      writeFileSync(path, '{"plants":[]}')
      const server = await lab.serve({ args: [toPath('systems/json-server.js'), path] })
      const { create, get, list } = toRequests(seedCount, 201)
      const ids = { kind: 'any', first: 0, count: seedCount - pageSize } as const
      const listPath = `/plants?_start={id}&_limit=${pageSize}`
      const requests = { create, get, list: { ...list, path: listPath, ids } }
      return { server, pids: [server.pid], requests }
    },
  },
  prism: {
    title: 'Prism mock 5.16.0',
    duties: mockDuties,
    async start(lab) {
      const port = await findFreePort()
      const options = ['mock', document, '--port', String(port), '--verboseLevel', 'silent']
      const args = [toPath('node_modules/@stoplight/prism-cli/dist/index.js'), ...options]
      const server = await lab.serve({ args, port })
      return { server, pids: [server.pid], requests: toRequests(seedCount, 200) }
    },
  },
  scalar: {
    title: 'Scalar mock 0.14.4',
    duties: mockDuties,
    async start(lab) {
      const server = await lab.serve({ args: [toPath('systems/scalar.js'), document] })
      return { server, pids: [server.pid], requests: toRequests(seedCount, 200) }
    },
  },
  pocketbase: {
    title: 'PocketBase',
    duties: { stores: 'yes', syncs: 'no', checksToken: 'no', checksBody: 'yes' },
    start: (lab) => startPocketBase(lab, String(lab.pocketbase)),
  },
} as const satisfies Record<string, Kind>

export type SystemName = keyof typeof kinds

/** The systems that others have made. */
export const peers: readonly SystemName[] = ['json-server', 'prism', 'scalar', 'pocketbase']

/** All systems. PocketBase takes part if its program is given. */
export function listSystems({ pocketbase }: Lab): SystemName[] {
  const names = Object.keys(kinds) as SystemName[]
  return names.filter((name) => name !== 'pocketbase' || pocketbase !== undefined)
}

type Serve = (lab: Lab, url: string) => Promise<Server>

/** Starts a system on a new store. */
export async function startOnSqlite(lab: Lab, name: string, serve: Serve, createStatus: number) {
  const server = await serve(lab, `sqlite:${join(lab.folder, `${name}.db`)}`)
  return { server, pids: [server.pid], requests: toRequests(seedCount, createStatus) }
}

/** Starts a system on a new store. The CPU time of the PostgreSQL server counts as its own. */
export async function startOnPostgres(lab: Lab, name: string, serve: Serve, createStatus: number) {
  const server = await serve(lab, await lab.newDatabase(name))
  const pids = [server.pid, Number((await lab.findPostgres()).process.pid)]
  return { server, pids, requests: toRequests(seedCount, createStatus) }
}

/** Starts systems and seeds each with plants. */
export async function startSystems(lab: Lab, names: readonly SystemName[]): Promise<System[]> {
  const systems: System[] = []
  for (const name of names) {
    lab.progress(`starting ${kinds[name].title}`)
    const system = { name, ...(await kinds[name].start(lab)) }
    await seed(lab, system)
    systems.push(system)
  }
  return systems
}

/** Stores the plants that a system holds before the measurement. */
export async function seed(
  lab: Lab,
  { server, requests }: Pick<System, 'server' | 'requests'>,
  count = seedCount,
): Promise<void> {
  const cycle = [toSeeds(requests.create)]
  const { port } = server
  await lab.drive({ port, connections: seedConnections, cycle, requests: count })
}

export async function stopSystems(
  lab: Lab,
  systems: readonly Pick<System, 'server'>[],
): Promise<void> {
  for (const { server } of systems) {
    await lab.forget(server.port)
    await server.stop()
  }
}
