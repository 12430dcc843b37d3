/** The story of one seed: processes, writers, mirrors and operators beside faults, then quiet. */
import { PlantStore } from '../../client/index.ts'
import { type Kind, toLine, toRow } from '../../src/journal/row.ts'
import { inTransaction, type Sql } from '../../src/store/postgres/sql.ts'
import { schemaVersion } from '../../src/store/tables.ts'
import type { SenderSettings } from '../../src/webhooks/sender.ts'
import '../../src/webhooks/worker.ts'
import {
  type Conditions,
  chooseConditions,
  chooseManners,
  chooseWeather,
  type Profile,
} from './conditions.ts'
import { openConnection } from './connection.ts'
import { disturb } from './disturb.ts'
import {
  buildServer,
  journalId,
  plantIds,
  type Receiver,
  type Server,
  since,
  type Tables,
} from './postgres.ts'
import { type Service, startService } from './service.ts'
import { addRow, changePlants } from './statements.ts'
import { setManners } from './transport.ts'
import { buildTruth, type Truth } from './truth.ts'
import { type Actor, buildWorld, type World } from './world.ts'

export interface Run {
  readonly seed: number
  readonly hash: string
  readonly steps: number
  /** The broken promise, if any. */
  readonly failure: string | undefined
  readonly trace: readonly string[]
}

/** How long the quiet after the faults may last. */
const quietMs = 120_000

export async function simulate(
  seed: number,
  tracing: 'traced' | 'untraced',
  profile?: Profile,
): Promise<Run> {
  const world = buildWorld(seed, tracing)
  let failure: string | undefined
  try {
    await world.run(
      () => void tell(world, profile).catch((error) => world.fail(String(error.stack))),
    )
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error)
  }
  return { seed, hash: world.hash(), steps: world.steps(), failure, trace: world.trace }
}

/** What the parts of the story share. */
export interface Stage {
  readonly world: World
  readonly server: Server
  readonly truth: Truth
  readonly conditions: Conditions
  readonly settings: Partial<SenderSettings>
  readonly services: Service[]
  /** Every process that can be stopped. */
  readonly processes: Actor[]
  isCalm: boolean
}

async function tell(world: World, profile: Profile | undefined): Promise<void> {
  const conditions = chooseConditions(world, profile)
  const truth = buildTruth()
  const isCalm = () => stage.isCalm
  const weather = chooseWeather(world, conditions, isCalm)
  const tables = newTables(conditions)
  const server = buildServer(tables, weather, truth, conditions.standby)
  for (const row of tables.journal) if (row.count > 0) truth.commit(row)
  const settings = {
    timeoutMs: 2_000,
    retryDelaysMs: Array.from({ length: conditions.attempts }, (_, n) =>
      Math.min(50 * 3 ** n, 1_500),
    ),
    keptDeliveries: conditions.keptDeliveries,
  }
  const stage: Stage = {
    ...{ world, server, truth, conditions, settings, services: [], processes: [], isCalm: false },
  }
  setManners(chooseManners(world, conditions, isCalm))
  world.note(JSON.stringify(conditions))
  for (let n = 1; n <= conditions.services; n++) keepService(stage, `service ${n}`)
  for (let n = 1; n <= conditions.writers; n++) runWriter(stage, `writer ${n}`)
  for (let n = 1; n <= conditions.mirrors; n++) runReader(stage, `mirror ${n}`, 'mirror')
  for (let n = 1; n <= conditions.followers; n++) runReader(stage, `follower ${n}`, 'follower')
  await disturb(stage)
  stage.isCalm = true
  world.note('quiet begins')
  await settleDown(stage)
  world.end()
}

function newTables({ receivers, isMoved }: Conditions): Tables {
  const rows = receivers.map((types, index): Receiver => {
    const id = `whk_${index + 1}`
    return {
      ...{ id, url: `http://${id}/`, types, secret: 'whsec_AAAA', previous_secret: null },
      ...{ previous_until: null, state: 'active', reason: null, created_at: 0, ahead: '' },
      ...{ position: `${journalId}-${since}-0-1`, last_success_at: null, last_failure_at: null },
      ...{ last_failure: null, failing_since: null },
      ...{ lease_owner: null, lease_until: 0, lease_epoch: 0 },
    }
  })
  const first = { seq: since, nonce: 1, at: 0, count: 0, changes: '' }
  const moved = { id: plantIds[0] as string, name: 'moved' }
  const change = toLine('c', undefined, { id: BigInt(moved.id), name: moved.name })
  return {
    journal: isMoved ? [first, { ...toRow([change]), seq: since + 30 }] : [first],
    plants: new Map(isMoved ? [[moved.id, moved.name]] : []),
    ...{ receivers: rows, deliveries: [] },
    receiver_revision: [{ revision: 1, home: isMoved ? 'another' : 'sim/1' }],
    journal_life: [{ id: journalId }],
    schema_version: [{ version: schemaVersion }],
    ...{ seq: since, commits: isMoved ? 1 : 0 },
  }
}

/** Starts a process, and again after it has ended. */
function keepService(stage: Stage, name: string): void {
  const { world, services, processes } = stage
  const actor = world.newActor(name)
  processes.push(actor)
  world.note(`${name}: starts`)
  world.as(actor, () =>
    startService(stage.settings).then(
      (service) => services.push(service),
      () => endProcess(stage, actor),
    ),
  )
}

/** Ends a process at once, and starts it again some time later. */
export function endProcess(stage: Stage, actor: Actor): void {
  const { world, services, processes, server } = stage
  if (actor.state === 'dead') return
  const service = services.find((one) => one.actor === actor)
  world.kill(actor)
  server.cut(actor)
  service?.reset()
  if (service !== undefined) services.splice(services.indexOf(service), 1)
  processes.splice(processes.indexOf(actor), 1)
  const start = () => keepService(stage, actor.name)
  world.plan(world.between(0, 2_000), 'a process starts', start, world.nobody)
}

/** What a change of a plant was; a name is null if there was nothing to delete. */
interface Changed {
  readonly id: string
  readonly kind: Kind
  readonly name: string | null
}

/** Changes plants, as any process does: locks them, draws a number, and commits or rolls back. */
function runWriter(stage: Stage, name: string): void {
  const { world, conditions, processes } = stage
  const actor = world.newActor(name)
  let count = 0
  processes.push(actor)
  world.as(actor, async () => {
    // The first process prepares the database.
    while (stage.services.length === 0) await world.pause(10)
    while (!stage.isCalm) {
      const connection = await openConnection().catch(() => undefined)
      try {
        while (!stage.isCalm && connection !== undefined) {
          await world.pause(world.between(5, conditions.writeMs))
          await write(connection.sql)
        }
      } catch {
        connection?.destroy()
      }
      await world.pause(world.between(10, 200))
      connection?.destroy()
    }
  })

  async function write(sql: Sql): Promise<void> {
    const isKept = world.chance(0.85)
    const run = inTransaction(sql, async () => {
      const ids = pickPlants()
      const names = ids.map(() => (world.chance(0.25) ? null : `${name.slice(-1)}.${++count}`))
      const found = await sql.run<Changed[]>(changePlants, [ids, names])
      const lines = found.flatMap(({ id, kind, name: text }) =>
        text === null ? [] : [toLine(kind, undefined, { id: BigInt(id), name: text })],
      )
      if (lines.length > 0) {
        const { at, nonce, count: changes, changes: text } = toRow(lines)
        await sql.run(addRow, [at, nonce, changes, text])
      }
      if (world.chance(conditions.stalls)) await world.pause(world.between(300, 3_500))
      if (!isKept) throw new Error('rolled back')
    })
    await run.catch((error) => {
      if (isKept) throw error
    })
  }

  function pickPlants(): string[] {
    const length = world.chance(0.5) ? 1 : 1 + world.pick(6)
    return Array.from({ length }, () => world.oneOf(plantIds))
  }
}

/** A client whose requests reach any process. */
function newClient({ world, services }: Stage): PlantStore {
  return new PlantStore({
    url: 'http://sim',
    token: 'sim',
    fetch: (input, init) =>
      services.length === 0
        ? world.pause(1).then(() => Promise.reject(new TypeError('fetch failed')))
        : world.oneOf(services).fetch(input, init),
  })
}

/** Follows from the oldest change, or mirrors, sometimes leaves, and comes back. */
function runReader(stage: Stage, name: string, kind: 'mirror' | 'follower'): void {
  const { world, truth, conditions } = stage
  world.as(world.newActor(name), async () => {
    await world.pause(world.between(0, conditions.activeMs))
    let reader = truth.add(name, kind)
    let after: string | undefined
    for (;;) {
      const stop = new AbortController()
      const { signal } = stop
      const leaves = !stage.isCalm && world.chance(conditions.leaves)
      if (leaves) world.plan(world.between(50, 3_000), `${name} leaves`, () => stop.abort())
      const client = newClient(stage)
      try {
        const changes =
          kind === 'mirror' ? client.mirror({ after, signal }) : client.events({ signal })
        for await (const change of changes) {
          reader.tell(change)
          // A mirror can be continued once it is synced.
          if (change.type === 'reset') after = undefined
          else if (change.type === 'synced') after = change.position
          else if (change.type !== 'plant' && after !== undefined) after = change.position
          if (world.chance(0.05)) await world.pause(world.between(0, 40))
        }
      } catch {
        await world.pause(world.between(10, 300))
      }
      if (kind === 'mirror') continue
      reader.leave()
      reader = truth.add(name, kind)
    }
  })
}

/** Waits until everybody has come to the same end. */
async function settleDown({ world, server, services, truth, conditions }: Stage): Promise<void> {
  const endsAt = world.now() + quietMs
  for (;;) {
    await world.pause(250)
    const isOver = services.length === conditions.services && [...server.open()].length === 0
    const unfinished = isOver ? truth.findUnfinished() : ['processes or transactions are under way']
    if (unfinished.length === 0) return
    for (const { id, state } of server.tables().receivers) {
      const [service] = services
      if (state !== 'paused' || service === undefined) continue
      const { receivers } = service.store
      world.as(service.actor, () => receivers.change(id, { kind: 'resume' }).catch(() => {}))
    }
    if (world.now() < endsAt) continue
    world.fail(`after ${quietMs / 1000} s of quiet: ${unfinished.slice(0, 3).join('; ')}`)
  }
}
