import { join } from 'node:path'
import type { Lab, Server } from './lab.ts'
import { type Requests, seedCount, toRequests, toSeeds } from './requests.ts'
import { serveBaseline, servePlantStore, toPath } from './serve.ts'
import { startPocketBase } from './systems/pocketbase.ts'

/** A running system and the requests that it understands. */
export interface System {
  readonly name: string
  readonly server: Server
  /** The processes whose CPU time counts as the system's, with all their descendants. */
  readonly pids: readonly number[]
  readonly requests: Requests
}

/** A system that can be compared. */
interface Kind {
  readonly title: string
  start(lab: Lab): Promise<Omit<System, 'name'>>
}

const seedConnections = 64

/** Every system, in the order of the tables. */
export const kinds = {
  echo: {
    title: 'bare echo',
    async start(lab) {
      const server = await lab.serve({ args: [toPath('systems/echo.ts')] })
      return { server, pids: [server.pid], requests: toRequests(seedCount) }
    },
  },
  'ours-sqlite': {
    title: 'Plant Store, SQLite',
    start: (lab) => startOnSqlite(lab, 'ours', servePlantStore, 200),
  },
  'baseline-sqlite': {
    title: 'commit per request, SQLite',
    start: (lab) => startOnSqlite(lab, 'baseline', serveBaseline, 201),
  },
  'ours-postgres': {
    title: 'Plant Store, PostgreSQL',
    start: (lab) => startOnPostgres(lab, 'ours', servePlantStore, 200),
  },
  'baseline-postgres': {
    title: 'an INSERT each, PostgreSQL',
    start: (lab) => startOnPostgres(lab, 'baseline', serveBaseline, 201),
  },
  pocketbase: {
    title: 'PocketBase',
    start: (lab) => startPocketBase(lab, String(lab.pocketbase)),
  },
} as const satisfies Record<string, Kind>

export type SystemName = keyof typeof kinds

/** All systems. PocketBase takes part if its program is given. */
export function listSystems({ pocketbase }: Lab): SystemName[] {
  const names = Object.keys(kinds) as SystemName[]
  return names.filter((name) => name !== 'pocketbase' || pocketbase !== undefined)
}

type Serve = (lab: Lab, url: string) => Promise<Server>

/** Starts a system on a new store. */
async function startOnSqlite(lab: Lab, name: string, serve: Serve, createStatus: number) {
  const server = await serve(lab, `sqlite:${join(lab.folder, `${name}.db`)}`)
  return { server, pids: [server.pid], requests: toRequests(seedCount, createStatus) }
}

/** Starts a system on a new store. The CPU time of the PostgreSQL server counts as its own. */
async function startOnPostgres(lab: Lab, name: string, serve: Serve, createStatus: number) {
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
