/**
 * A simulated PostgreSQL: as much of it as the order of changes depends on.
 *
 * - The sequence is not part of transactions: a number that is rolled back leaves a gap. A
 *   transaction that has drawn a number holds a lock on the sequence until it ends.
 * - A commit writes its record, may wait for a standby, becomes visible, and only then releases
 *   its locks; the answer comes later.
 * - Each statement sees the tables as they are when it begins. Tables never change: a commit makes
 *   new ones, so a snapshot is a reference, and so is the state of a standby that is behind.
 * - A failover continues with a state that the standby has. Changes of plants wait for the standby
 *   unless it is an asynchronous one. Takes and saves of webhooks do not, so the last may be lost.
 *
 * `statements.ts` knows what each statement of the source does.
 */
import { run as runStatement } from './statements.ts'
import type { Truth } from './truth.ts'
import { type Actor, world } from './world.ts'

export interface JournalRecord {
  readonly seq: number
  readonly nonce: number
  readonly at: number
  readonly count: number
  readonly changes: string
}

/** The columns that the server looks at; the others are kept as they are. */
export interface Receiver extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly types: string
  readonly state: 'active' | 'paused'
  readonly reason: string | null
  readonly position: string
  readonly lease_owner: string | null
  readonly lease_until: number
  readonly lease_epoch: number
}

/** A change that a receiver must get. */
export type NewDelivery = {
  readonly place: string
  readonly position: string
  readonly type: string
  readonly at: number
  readonly plant_id: bigint
  readonly body: string
}

export type Delivery = NewDelivery & {
  readonly receiver_id: string
  readonly attempts: number
  readonly due_at: number | null
  readonly last_status: number | null
  readonly last_error: string | null
}

export type Rows = Readonly<Record<string, unknown>>[] & { count?: number }

export interface Tables {
  /** In the order of `seq`. */
  readonly journal: readonly JournalRecord[]
  /** Names by id. */
  readonly plants: ReadonlyMap<string, string>
  readonly receivers: ReadonlyMap<string, Receiver>
  /** By receiver and place. */
  readonly deliveries: ReadonlyMap<string, Delivery>
  readonly revision: number
  /** The last value of the sequence, and the number of rows that were ever committed. */
  readonly seq: number
  readonly commits: number
}

/** A change of the tables. */
export type Effect = (tables: Tables) => Partial<Tables>

export interface Transaction {
  readonly id: string
  readonly effects: Effect[]
  readonly drawn: JournalRecord[]
  readonly locks: Set<string>
  usedAt: number
  isCommitting: boolean
}

/** The side of the server of a connection. */
export interface Backend {
  readonly process: Actor
  readonly timeline: number
  transaction: Transaction | undefined
  run(text: string, values: readonly unknown[]): Promise<Rows>
}

/** How statements travel and run. In the calm, nothing is late or lost. */
export interface Weather {
  travelMs(): number
  runMs(text: string): number
  /** How long a commit waits for a standby. */
  commitMs(): number
  /** The chance that a statement breaks its connection, and that one cannot be opened. */
  lost: number
  refused: number
}

export interface Server {
  readonly actor: Actor
  readonly weather: Weather
  readonly truth: Truth
  tables(): Tables
  isUp(): boolean
  connect(process: Actor, onLost: (reason: string) => void): Backend
  disconnect(backend: Backend): void
  begin(backend: Backend): undefined
  commit(backend: Backend): Promise<undefined>
  rollback(backend: Backend): undefined
  /** Changes the tables: when the transaction commits, or at once if there is none. */
  write(backend: Backend, effect: Effect, durability: 'synced' | 'not synced'): void
  draw(backend: Backend, row: Omit<JournalRecord, 'seq'>): void
  lock(backend: Backend, ids: readonly string[]): Promise<void>
  /** The transactions that hold a lock on the sequence. */
  holders(): string[]
  /** Transactions that may still commit. */
  open(): Iterable<Transaction>
  failOver(downMs: number): void
  /** Breaks the connections of a process that is killed or cut off. */
  cut(process: Actor): void
}

let current: Server | undefined

/** The server of the world that runs. */
export function server(): Server {
  if (current === undefined) throw new Error('No server runs.')
  return current
}

export const journalId = 'abcdefabcdef'
/** The row with which the journal begins. */
export const since = 1
/** How long a transaction may be idle, as the settings of the service say. */
const idleMs = 5_000
/** The states that an asynchronous standby may be at. */
const maxKept = 12

export function buildServer(
  first: Tables,
  weather: Weather,
  truth: Truth,
  standby: 'synchronous' | 'asynchronous',
): Server {
  const { pause, plan, pick, chance, between, note, fail, newActor } = world()
  const actor = newActor('server')
  let tables = first
  let kept = [first]
  let timeline = 0
  let isUp = true
  let drawn = first.seq
  let ids = 0
  const holders = new Set<string>()
  const open = new Set<Transaction>()
  const backends = new Map<Backend, (reason: string) => void>()
  let waiters: (() => void)[] = []

  function apply(effects: readonly Effect[], durability: 'synced' | 'not synced'): void {
    for (const effect of effects) tables = { ...tables, ...effect(tables) }
    tables = { ...tables, seq: drawn }
    if (durability === 'synced' && standby === 'synchronous') kept = []
    kept.push(tables)
    if (kept.length > maxKept) kept.shift()
  }

  function publish({ effects, drawn: rows, id }: Transaction): void {
    apply(effects, 'synced')
    for (const row of rows) {
      tables = { ...tables, ...insert(tables, row), commits: tables.commits + 1 }
      kept.splice(-1, 1, tables)
      truth.commit(row)
    }
    note(`server: ${id} is visible, with ${rows.map(({ seq }) => seq).join(', ') || 'no row'}`)
  }

  function release(transaction: Transaction): void {
    holders.delete(transaction.id)
    transaction.locks.clear()
    const woken = waiters
    waiters = []
    for (const wake of woken) wake()
  }

  function rollback(backend: Backend): undefined {
    const { transaction } = backend
    if (transaction === undefined || transaction.isCommitting) return
    backend.transaction = undefined
    if (!open.delete(transaction)) return
    note(`server: ${transaction.id} is rolled back`)
    plan(between(0, 2), 'locks are released', () => release(transaction), actor)
  }

  function watchIdle(backend: Backend, transaction: Transaction): void {
    const check = () => {
      if (backend.transaction !== transaction || transaction.isCommitting) return
      const leftMs = Math.min(transaction.usedAt + idleMs - world().now(), idleMs)
      if (leftMs > 0) plan(leftMs, 'an idle transaction is checked', check, actor)
      else {
        rollback(backend)
        lose(backend, backends.get(backend) ?? (() => {}))
        backends.delete(backend)
      }
    }
    plan(idleMs, 'an idle transaction is checked', check, actor)
  }

  /** Tells the process that a connection is lost. */
  function lose(backend: Backend, onLost: (reason: string) => void): void {
    const run = () => onLost('ECONNRESET')
    plan(between(0, 100), 'a connection is lost', run, backend.process)
  }

  /** The server still runs what it has received, and notices the end some time after that. */
  function disconnect(backend: Backend): void {
    const leave = () => {
      if (backends.delete(backend)) rollback(backend)
    }
    const delayMs = between(0, chance(0.2) ? 3_000 : 5)
    plan(delayMs, 'the server notices a lost connection', leave, actor)
  }

  function connect(process: Actor, onLost: (reason: string) => void): Backend {
    let tail: Promise<unknown> = Promise.resolve()
    const backend: Backend = {
      process,
      timeline,
      transaction: undefined,
      run(text, values) {
        const done = tail.then(async () => {
          const delayMs = weather.runMs(text)
          if (delayMs > 0) await pause(delayMs)
          if (!backends.has(backend)) return new Promise<never>(() => {})
          const { transaction } = backend
          if (transaction !== undefined) transaction.usedAt = Infinity
          const rows = await runStatement(backend, text, values)
          // A server that is gone answers nothing.
          if (backend.timeline !== timeline) return new Promise<never>(() => {})
          if (transaction !== undefined) transaction.usedAt = world().now()
          return rows
        })
        // Whatever fails here is a fault of the simulation.
        tail = done.catch((error) => fail(String(error)))
        return done
      },
    }
    backends.set(backend, onLost)
    return backend
  }

  function failOver(downMs: number): void {
    if (!isUp) return
    const waiting = [...open].filter(({ isCommitting }) => isCommitting)
    const index = pick(kept.length)
    const isLatest = index === kept.length - 1
    tables = kept[index] as Tables
    note(`server: fails over, ${kept.length - 1 - index} commits are lost`)
    truth.failOver(tables.commits)
    kept = [tables]
    timeline++
    isUp = false
    // A server logs the sequence ahead of its use.
    drawn = tables.seq + pick(33)
    open.clear()
    holders.clear()
    waiters = []
    // Records of commits that nobody has seen yet may have reached the standby.
    for (const one of isLatest ? waiting.slice(0, pick(waiting.length + 1)) : []) {
      publish(one)
      drawn = Math.max(drawn, ...one.drawn.map(({ seq }) => seq))
    }
    for (const [backend, onLost] of backends) {
      // Some connections are silent: the heartbeat has to notice.
      if (!chance(0.3)) lose(backend, onLost)
    }
    backends.clear()
    const start = () => {
      isUp = true
      note('server: is up')
    }
    plan(downMs, 'the server starts', start, actor)
  }

  current = {
    actor,
    weather,
    truth,
    connect,
    disconnect,
    failOver,
    rollback,
    tables: () => tables,
    isUp: () => isUp,
    holders: () => [...holders],
    open: () => open,
    cut(process) {
      for (const [backend, onLost] of backends) {
        if (backend.process !== process) continue
        lose(backend, onLost)
        disconnect(backend)
      }
    },
    begin(backend) {
      const id = `${backend.timeline}/${++ids}`
      const transaction = {
        ...{ id, effects: [], drawn: [], locks: new Set<string>() },
        ...{ usedAt: world().now(), isCommitting: false },
      }
      backend.transaction = transaction
      open.add(transaction)
      watchIdle(backend, transaction)
    },
    async commit(backend) {
      const { transaction } = backend
      if (transaction === undefined) return
      transaction.isCommitting = true
      if (transaction.drawn.length > 0) await pause(weather.commitMs())
      if (backend.timeline !== timeline) return
      publish(transaction)
      backend.transaction = undefined
      open.delete(transaction)
      await pause(between(0, 2))
      if (backend.timeline === timeline) release(transaction)
    },
    write(backend, effect, durability) {
      if (backend.transaction === undefined) apply([effect], durability)
      else backend.transaction.effects.push(effect)
    },
    draw({ transaction }, row) {
      if (transaction === undefined) throw new Error('A row is drawn in a transaction.')
      const seq = ++drawn
      transaction.drawn.push({ ...row, seq })
      holders.add(transaction.id)
      note(`server: ${transaction.id} draws ${seq}`)
    },
    async lock(backend, wanted) {
      const { transaction } = backend
      const isTaken = () =>
        [...open].some((one) => one !== transaction && wanted.some((id) => one.locks.has(id)))
      while (isTaken()) await new Promise<void>((resolve) => waiters.push(resolve))
      // It may have been rolled back while it waited.
      if (transaction === undefined || !open.has(transaction)) await new Promise<never>(() => {})
      for (const id of wanted) transaction?.locks.add(id)
    },
  }
  return current
}

function insert({ journal }: Tables, row: JournalRecord): Pick<Tables, 'journal'> {
  const index = journal.findIndex(({ seq }) => seq > row.seq)
  return { journal: journal.toSpliced(index === -1 ? journal.length : index, 0, row) }
}
