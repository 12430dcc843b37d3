import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../test/support/postgres.ts'
import type { Lab, Served } from './lab.ts'
import { pageSize, type Requests, seedCount, token, toRequests, toSeeds } from './requests.ts'

/** A system that runs, and what is asked of it. */
export interface System {
  readonly name: SystemName
  readonly served: Served
  /** The processes whose CPU time is its own, with all their descendants. */
  readonly pids: readonly number[]
  readonly requests: Requests
}

/** What a system does of what ours does. */
export interface Kind {
  readonly title: string
  readonly does: {
    readonly store: string
    readonly sync: string
    readonly token: string
    readonly check: string
  }
  start(lab: Lab): Promise<Omit<System, 'name'>>
}

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
export const plantStore = pathOf('../bin/plant-store.js')
const document = pathOf('../openapi.json')
const nothing = { store: 'no', sync: 'no', token: 'no', check: 'no' }
const everything = { store: 'yes', sync: 'yes', token: 'yes', check: 'yes' }

/** Everything that is compared, in the order of the tables. */
export const kinds = {
  echo: {
    title: 'bare node:http echo (the ceiling)',
    does: nothing,
    async start(lab) {
      const served = await lab.serve({ args: [pathOf('systems/echo.ts')] })
      return { served, pids: [served.pid], requests: toRequests(seedCount, 200) }
    },
  },
  'ours-sqlite': {
    title: 'Plant Store, SQLite',
    does: everything,
    start: (lab) => startOnSqlite(lab, 'ours', serveOurs, 200),
  },
  'usual-sqlite': {
    title: 'Fastify, SQLite, a commit per request',
    does: everything,
    start: (lab) => startOnSqlite(lab, 'usual', serveUsual, 201),
  },
  'ours-postgres': {
    title: 'Plant Store, PostgreSQL',
    does: everything,
    start: (lab) => startOnPostgres(lab, 'ours', serveOurs, 200),
  },
  'usual-postgres': {
    title: 'Fastify, PostgreSQL, an INSERT per request',
    does: everything,
    start: (lab) => startOnPostgres(lab, 'usual', serveUsual, 201),
  },
  'json-server': {
    title: 'json-server 0.17.4',
    does: { store: 'a file, written anew with each change', sync: 'no', token: 'no', check: 'no' },
    async start(lab) {
      const path = join(lab.folder, 'json-server.json')
      writeFileSync(path, '{"plants":[]}')
      const served = await lab.serve({ args: [pathOf('systems/json-server.js'), path] })
      const { create, get, list } = toRequests(seedCount, 201)
      const ids = { kind: 'any', first: 0, count: seedCount - pageSize } as const
      const path100 = `/plants?_start={id}&_limit=${pageSize}`
      const requests = { create, get, list: { ...list, path: path100, ids } }
      return { served, pids: [served.pid], requests }
    },
  },
  prism: {
    title: "Prism's mock 5.16.0",
    does: {
      store: 'no; a page is one plant',
      sync: 'no',
      token: 'that there is one',
      check: 'yes',
    },
    async start(lab) {
      const port = await findFreePort()
      const options = ['mock', document, '--port', String(port), '--verboseLevel', 'silent']
      const args = [pathOf('node_modules/@stoplight/prism-cli/dist/index.js'), ...options]
      const served = await lab.serve({ args, port })
      return { served, pids: [served.pid], requests: toRequests(seedCount, 200) }
    },
  },
  scalar: {
    title: "Scalar's mock server 0.14.4",
    does: {
      store: 'no; a page is one plant',
      sync: 'no',
      token: 'that there is one',
      check: 'yes',
    },
    async start(lab) {
      const served = await lab.serve({ args: [pathOf('systems/scalar.js'), document] })
      return { served, pids: [served.pid], requests: toRequests(seedCount, 200) }
    },
  },
} as const satisfies Record<string, Kind>

export type SystemName = keyof typeof kinds

type Serve = (lab: Lab, url: string) => Promise<Served>

async function startOnSqlite(lab: Lab, place: string, serve: Serve, createStatus: number) {
  const served = await serve(lab, `sqlite:${join(lab.folder, `${place}.db`)}`)
  return { served, pids: [served.pid], requests: toRequests(seedCount, createStatus) }
}

/** The CPU time of the server is that of the system. */
async function startOnPostgres(lab: Lab, place: string, serve: Serve, createStatus: number) {
  const served = await serve(lab, await lab.newDatabase(place))
  const pids = [served.pid, Number((await lab.findPostgres()).process.pid)]
  return { served, pids, requests: toRequests(seedCount, createStatus) }
}

/** Those that have to be installed first. */
export const peers: readonly SystemName[] = ['json-server', 'prism', 'scalar']
export const namesOfAll = Object.keys(kinds) as SystemName[]

/** How a process is started beside what it is. */
export interface Surroundings {
  /** Options of Node.js. */
  readonly options?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Starts ours as users do. */
export function serveOurs(lab: Lab, url: string, around: Surroundings = {}): Promise<Served> {
  const { options = [], env = {} } = around
  const args = [...options, plantStore, 'serve']
  return lab.serve({ args, env: { ...env, ...toSettings(url) } })
}

/** Starts ours on SQLite with every commit on the event loop, however slow the disk is. */
export function serveInPlace(
  lab: Lab,
  url: string,
  { env = {} }: Surroundings = {},
): Promise<Served> {
  const args = [pathOf('systems/in-place.ts')]
  return lab.serve({ args, env: { ...env, ...toSettings(url) } })
}

function toSettings(url: string): Record<string, string> {
  return { DATABASE_URL: url, PLANT_STORE_TOKEN: token }
}

/** Starts the usual way, on an engine. */
export function serveUsual(
  lab: Lab,
  url: string,
  { env = {} }: Surroundings = {},
): Promise<Served> {
  const isSqlite = url.startsWith('sqlite:')
  const program = pathOf(`systems/usual-${isSqlite ? 'sqlite' : 'postgres'}.ts`)
  return lab.serve({ args: [program, url.replace(/^sqlite:/, '')], env })
}

/** Starts what starting is compared with. */
export function startBareFastify(lab: Lab): Promise<Served> {
  return lab.serve({ args: [pathOf('systems/bare-fastify.ts')] })
}

/** Starts systems and stores the first plants in each. */
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

/** Stores the plants that are there before anything is measured. */
export async function seed(
  lab: Lab,
  { served, requests }: Pick<System, 'served' | 'requests'>,
  count = seedCount,
): Promise<void> {
  const cycle = [toSeeds(requests.create)]
  await lab.drive({ port: served.port, connections: 64, cycle, requests: count })
}

export async function stopSystems(
  lab: Lab,
  systems: readonly Pick<System, 'served'>[],
): Promise<void> {
  for (const { served } of systems) {
    await lab.forget(served.port)
    await served.stop()
  }
}
