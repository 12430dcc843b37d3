import type { Disturbance } from './conditions.ts'
import { openStore, type Service } from './service.ts'
import { endProcess, type Stage } from './simulate.ts'

/** Disturbs the processes and the server, until the quiet. */
export async function disturb(stage: Stage): Promise<void> {
  const { world, server, conditions, services, processes } = stage
  const { between, pick, oneOf, chance, plan, note } = world
  /** A command has a store of its own. */
  const operator = world.newActor('operator')
  const commands = conditions.disturbances.includes('operate')
    ? world.as(operator, openStore).catch(() => undefined)
    : undefined
  const anyService = () => (services.length === 0 ? undefined : oneOf(services))
  /** Asks a process for what it does by itself from time to time. */
  const ask = (run: (service: Service) => Promise<unknown>) => {
    const service = anyService()
    if (service !== undefined) world.as(service.actor, () => run(service).catch(() => {}))
  }

  const disturbances: Record<Disturbance, () => void> = {
    stop() {
      const actor = oneOf(processes)
      const [least, most] = oneOf([
        [2, 50],
        [200, 3_500],
        [200, 3_500],
        [4_000, 9_000],
      ] as const)
      const ms = between(least, most)
      note(`${actor.name}: is stopped for ${ms.toFixed()} ms`)
      world.stop(actor)
      plan(ms, `${actor.name} continues`, () => world.resume(actor))
    },
    suspend() {
      const service = anyService()
      if (service === undefined || services.some(({ actor }) => actor.state === 'stopped')) return
      const { actor } = service
      const ms = chance(0.3) ? between(500, 5_000) : between(6_000, 12_000)
      note(`${actor.name}: its machine is suspended for ${ms.toFixed()} ms`)
      world.stop(actor)
      plan(ms, `${actor.name} wakes up`, () => world.resume(actor, ms))
    },
    'step a clock'() {
      const service = anyService()
      if (service !== undefined) service.actor.skewMs += between(-15_000, 15_000)
    },
    kill() {
      const service = anyService()
      if (service === undefined) return
      note(`${service.actor.name}: is killed`)
      endProcess(stage, service.actor)
    },
    restart() {
      const service = anyService()
      if (service === undefined) return
      note(`${service.actor.name}: is shut down`)
      world.as(service.actor, async () => {
        await service.close().catch(() => {})
        endProcess(stage, service.actor)
      })
    },
    cut() {
      const service = anyService()
      if (service === undefined) return
      note(`${service.actor.name}: loses its connections`)
      if (chance(0.5)) server.cut(service.actor)
      else service.reset()
    },
    'fail over': () => server.failOver(between(20, 1_500)),
    trim: () => ask(({ store }) => store.trimJournal(Date.now() - between(0, 2_500))),
    drop() {
      const { seq = 0 } = server.tables().journal[0] ?? {}
      ask(({ store }) => store.dropChanges(seq + pick(5)))
    },
    operate() {
      const secrets = { current: 'whsec_AAAA', previous: 'whsec_AAAB', previousUntil: 0 }
      const id = `whk_${1 + pick(conditions.receivers.length)}`
      const rotate = { kind: 'set secrets', secrets } as const
      const pause = { kind: 'pause', reason: 'an operator' } as const
      const command = oneOf([rotate, rotate, pause, { kind: 'resume' } as const, 'resend'] as const)
      world
        .as(operator, async () => {
          const receivers = (await commands)?.receivers
          note(`operator: ${command === 'resend' ? command : command.kind} ${id}`)
          if (command === 'resend') await receivers?.retryFailures(id, Date.now())
          else await receivers?.change(id, command)
        })
        .catch(() => {})
    },
  }
  const endsAt = world.now() + conditions.activeMs
  while (world.now() < endsAt) {
    await world.pause(between(20, conditions.disturbanceMs))
    if (conditions.disturbances.length > 0) disturbances[oneOf(conditions.disturbances)]()
  }
}
