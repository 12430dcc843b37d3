/**
 * A simulated world for the modules that several processes share a journal through: the journal and
 * its horizon, its reader, the sender of webhooks with its leases, and the mirror of the client.
 * These are the real modules, and so are the store around them and its connection handling. The
 * rest is simulated: PostgreSQL (`postgres.ts`), connections to it (`connection.ts`), receivers
 * of webhooks (`transport.ts`), HTTP (`service.ts`) and time (this file).
 *
 * One loop, one clock, one random source. Everything that happens is a step: a timer fires, a
 * statement reaches the server, an answer comes back, a process is killed. The delay of a step is
 * drawn from the seeded random source when the step is planned, and the loop takes the step that is
 * due next. All promises settle before the one after it, so the order of the steps is the whole
 * schedule. The same seed gives the same run, step by step: `hash` proves it, and a failure is
 * replayed by its seed.
 *
 * Every step belongs to an actor: a process, the server, a client. The actor follows the code of
 * its steps through promises (`AsyncLocalStorage`), so that a timer belongs to the process that set
 * it. The steps of a stopped actor are held until it continues; those of a dead one are dropped.
 * Each actor has clocks of its own, which may step, or stand still while its machine is suspended.
 *
 * Time needs no seam in the source: while a world runs, the global timers, clocks and
 * `Math.random` are those of the world, and `worker.ts` maps `node:timers/promises` to them.
 *
 * `simulate.ts` is the story of one seed: processes, writers, followers, mirrors and operators
 * beside disturbances (`disturb.ts`), under the conditions of the seed (`conditions.ts`), then a
 * quiet in which all of them must come to the same end. `truth.ts` knows what was committed, and
 * judges at every step what processes, mirrors and receivers are told. `faults.ts` puts faults into
 * the source, one at a time: the simulation must find each of them.
 *
 * What it does not show: anything that the simulated server gets wrong. A wall clock of the
 * database that steps by more than a lease is not simulated: it can make two holders of a lease for
 * up to two seconds.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** A process, the server, a client: what takes steps. */
export interface Actor {
  readonly name: string
  state: 'running' | 'stopped' | 'dead'
  /** What became due while it was stopped. */
  held: Step[]
  /** How far its monotonic clock is behind: the time for which its machine was suspended. */
  lagMs: number
  /** How far its wall clock is off. */
  skewMs: number
}

export interface Step {
  at: number
  readonly order: number
  readonly actor: Actor
  readonly label: string
  readonly isTimer: boolean
  /** Undefined once it is taken or cancelled. */
  run: (() => void) | undefined
}

/** A promise is broken. It ends the run. */
export class Violation extends Error {}

/** Steps that a run may take before it counts as one that does not end. */
const maxSteps = 400_000
const epochMs = Date.UTC(2026, 0, 1)

export type World = ReturnType<typeof buildWorld>

const currentActor = new AsyncLocalStorage<Actor>()
let current: World | undefined

/** The world that runs. */
export function world(): World {
  if (current === undefined) throw new Error('No world runs.')
  return current
}

/** Builds a world. It keeps a trace only if that is wanted: building the lines takes time. */
export function buildWorld(seed: number, tracing: 'traced' | 'untraced') {
  const random = buildRandom(seed)
  const trace: string[] = []
  /** Takes the steps that are not those of a process, such as a disturbance. */
  const nobody = newActor('world')
  const queue: Step[] = []
  let now = 0
  let order = 0
  let steps = 0
  let hash = 0x811c9dc5
  let failure: unknown
  let isOver = false

  function newActor(name: string): Actor {
    return { name, state: 'running', held: [], lagMs: 0, skewMs: 0 }
  }

  /** The actor whose code runs. */
  const actor = () => currentActor.getStore() ?? nobody

  function add(delayMs: number, label: string, run: () => void, of: Actor, isTimer: boolean) {
    const step: Step = { at: now + delayMs, order: order++, actor: of, label, isTimer, run }
    insert(queue, step)
    return step
  }

  function mix(text: string): void {
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
    }
  }

  function note(line: string): void {
    mix(line)
    if (tracing === 'traced') trace.push(`${now.toFixed(2).padStart(9)}  ${line}`)
  }

  function take(): boolean {
    const step = queue.pop()
    if (step === undefined) throw new Violation('nothing is left to happen')
    const { run, label, actor: of } = step
    now = Math.max(now, step.at)
    if (run === undefined || of.state === 'dead') return false
    if (of.state === 'stopped') {
      of.held.push(step)
      return false
    }
    step.run = undefined
    if (++steps > maxSteps) throw new Violation('the run does not end')
    hash = Math.imul(hash ^ ((now * 1_000) | 0), 0x01000193)
    mix(label)
    mix(of.name)
    currentActor.run(of, run)
    return true
  }

  /** Lets it continue. If its machine was suspended, its monotonic clock has missed that time. */
  function resume(of: Actor, suspendedMs = 0): void {
    if (of.state !== 'stopped') return
    of.state = 'running'
    of.lagMs += suspendedMs
    queue.push(...of.held)
    of.held = []
    for (const step of queue) if (step.actor === of && step.isTimer) step.at += suspendedMs
    queue.sort((one, other) => (isLater(one, other) ? -1 : 1))
  }

  const api = {
    nobody,
    random,
    newActor,
    actor,
    resume,
    trace,
    now: () => now,
    steps: () => steps,
    hash: () => (hash >>> 0).toString(16).padStart(8, '0'),
    /** An integer below `count`. */
    pick: (count: number) => Math.floor(random() * count),
    chance: (probability: number) => random() < probability,
    between: (least: number, most: number) => least + random() * (most - least),
    oneOf: <One>(some: readonly One[]): One => some[Math.floor(random() * some.length)] as One,
    /** Plans a step, of the current actor unless another is given. */
    plan: (delayMs: number, label: string, run: () => void, of = actor()) =>
      add(delayMs, label, run, of, false),
    /** Waits as a process does: not while it is stopped. */
    pause: (delayMs: number): Promise<void> =>
      new Promise((resolve) => add(delayMs, 'pause', resolve, actor(), false)),
    stop(of: Actor): void {
      if (of.state === 'running') of.state = 'stopped'
    },
    kill(of: Actor): void {
      of.state = 'dead'
      of.held = []
    },
    /** Runs a function as an actor. */
    as: <Value>(of: Actor, run: () => Value): Value => currentActor.run(of, run),
    /** Adds a line to the trace. */
    note,
    /** Ends the run with a broken promise. */
    fail(message: string): void {
      failure ??= new Violation(message)
      note(`BROKEN: ${message}`)
      isOver = true
    },
    end(): void {
      isOver = true
    },
    /** Begins, and takes steps until it ends or fails. */
    run(begin: () => void): Promise<void> {
      const restore = replaceGlobals(api, (delayMs, run) =>
        add(Math.max(Math.trunc(delayMs) || 1, 1), 'timer', run, actor(), true),
      )
      current = api
      add(0, 'begin', begin, nobody, false)
      return new Promise<void>((resolve, reject) => {
        function turn(): void {
          try {
            while (!isOver && !take());
          } catch (error) {
            failure ??= error
            isOver = true
          }
          if (!isOver) {
            // A tick runs once every microtask has run, and all that those have queued.
            queueMicrotask(() => process.nextTick(turn))
            return
          }
          restore()
          current = undefined
          if (failure === undefined) resolve()
          else reject(failure)
        }
        process.nextTick(turn)
      })
    },
  }
  return api
}

/** A small generator of random numbers (mulberry32). */
function buildRandom(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Whether a step comes later than another. Steps that are due together run as they were planned. */
const isLater = (one: Step, other: Step) =>
  one.at > other.at || (one.at === other.at && one.order > other.order)

/** Adds a step to a queue, whose next step is the last: most new steps are due soon. */
function insert(queue: Step[], step: Step): void {
  let index = queue.length
  while (index > 0 && isLater(step, queue[index - 1] as Step)) index--
  queue.splice(index, 0, step)
}

type SetTimer = (delayMs: number, run: () => void) => Step

/** Replaces the timers, clocks and random numbers of the realm. Returns what restores them. */
function replaceGlobals(world: World, setTimer: SetTimer): () => void {
  const toTimer = (step: Step) => {
    const timer = { step, unref: () => timer, ref: () => timer }
    return timer
  }
  const clear = (timer?: { step: Step }) => {
    if (timer !== undefined) timer.step.run = undefined
  }
  type Task = (...args: unknown[]) => void
  const timers = {
    setTimeout: (run: Task, delayMs = 1, ...args: unknown[]) =>
      toTimer(setTimer(delayMs, () => run(...args))),
    setInterval(run: Task, delayMs: number) {
      const timer = toTimer(setTimer(delayMs, fire))
      function fire(): void {
        timer.step = setTimer(delayMs, fire)
        run()
      }
      return timer
    },
    setImmediate: (run: Task, ...args: unknown[]) =>
      toTimer(world.plan(world.random() * 0.02, 'immediate', () => run(...args))),
    ...{ clearTimeout: clear, clearInterval: clear, clearImmediate: clear },
  }
  const restores = [
    replace(globalThis, timers),
    replace(performance, { now: () => world.now() - world.actor().lagMs }),
    replace(Date, { now: () => Math.floor(epochMs + world.now() + world.actor().skewMs) }),
    replace(Math, { random: world.random }),
  ]
  return () => {
    for (const restore of restores) restore()
  }
}

/** Replaces members of an object. Returns what restores them. */
function replace(target: object, members: Record<string, unknown>): () => void {
  const before = Object.keys(members).map(
    (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
  )
  for (const [name, value] of Object.entries(members)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true })
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name)
      else Object.defineProperty(target, name, descriptor)
    }
  }
}
