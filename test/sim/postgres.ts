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

/** A row by column. */
export type Row = Readonly<Record<string, unknown>>

/** The columns that the server looks at; the others are kept as they are. */
export interface Receiver extends Row {
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
}

export type Rows = Row[] & { count?: number }

export interface Tables {
  /** In the order of `seq`. */
  readonly journal: readonly JournalRecord[]
  /** Names by id. */
  readonly plants: ReadonlyMap<string, string>
  readonly receivers: readonly Receiver[]
  readonly deliveries: readonly Delivery[]
  readonly receiver_revision: readonly { readonly revision: number; readonly home: string }[]
  readonly journal_life: readonly [{ readonly id: string }]
  readonly schema_version: readonly [{ readonly version: number }]
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
  isCommitting: boolean
}

/** The side of the server of a connection. */
export interface Backend {
  readonly process: Actor
  readonly timeline: number
  /** Tells the process that the connection is lost. */
  readonly onLost: (reason: string) => void
  transaction: Transaction | undefined
  run(text: string, values: readonly unknown[]): Promise<Rows>
}

/** How statements travel and run. In the calm, nothing is late or lost. */
export interface Weather {
  travelMs(): number
  runMs(text: string): number
  /** How long a commit waits for a standby. */
  commitMs(): number
  /** Whether a statement breaks its connection, and whether one cannot be opened. */
  isLost(): boolean
  isRefused(): boolean
}

export type Server = ReturnType<typeof buildServer>

let current: Server | undefined

/** The server of the world that runs. */
export function server(): Server {
  if (current === undefined) throw new Error('No server runs.')
  return current
}

export const journalId = 'abcdefabcdef'
export const plantIds = ['1', '2', '3', '4']
/** The row with which the journal begins. */
export const since = 1
/** The states that an asynchronous standby may be at. */
const maxKept = 12

export function buildServer(
  first: Tables,
  weather: Weather,
  truth: Truth,
  standby: 'synchronous' | 'asynchronous',
) {
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
  const backends = new Set<Backend>()
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

  function lose({ process, onLost }: Backend): void {
    plan(between(0, 100), 'a connection is lost', () => onLost('ECONNRESET'), process)
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
      ...{ process, timeline, onLost },
      transaction: undefined,
      run(text, values) {
        const done = tail.then(async () => {
          const delayMs = weather.runMs(text)
          if (delayMs > 0) await pause(delayMs)
          if (!backends.has(backend)) return new Promise<never>(() => {})
          const rows = await runStatement(backend, text, values)
          // A server that is gone answers nothing.
          if (backend.timeline !== timeline) return new Promise<never>(() => {})
          return rows
        })
        // Whatever fails here is a fault of the simulation.
        tail = done.catch((error) => fail(String(error)))
        return done
      },
    }
    backends.add(backend)
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
      // Its numbers are in the log before its commit is.
      drawn = Math.max(drawn, ...one.drawn.map(({ seq }) => seq))
      publish(one)
    }
    for (const backend of backends) {
      // Some connections are silent: the heartbeat has to notice.
      if (!chance(0.3)) lose(backend)
    }
    backends.clear()
    const start = () => {
      isUp = true
      note('server: is up')
    }
    plan(downMs, 'the server starts', start, actor)
  }

  const api = {
    actor,
    weather,
    truth,
    connect,
    disconnect,
    failOver,
    rollback,
    tables: () => tables,
    isUp: () => isUp,
    /** The last value of the sequence, as every transaction sees it. */
    lastValue: () => drawn,
    /** The transactions that hold a lock on the sequence. */
    holders: () => [...holders],
    /** Transactions that may still commit. */
    open: (): ReadonlySet<Transaction> => open,
    /** Breaks the connections of a process that is killed or cut off. */
    cut(process: Actor): void {
      for (const backend of backends) {
        if (backend.process !== process) continue
        lose(backend)
        disconnect(backend)
      }
    },
    begin(backend: Backend): undefined {
      const id = `${backend.timeline}/${++ids}`
      const transaction = {
        ...{ id, effects: [], drawn: [], locks: new Set<string>(), isCommitting: false },
      }
      backend.transaction = transaction
      open.add(transaction)
    },
    async commit(backend: Backend): Promise<undefined> {
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
    /** Changes the tables: when the transaction commits, or at once if there is none. */
    write(backend: Backend, effect: Effect, durability: 'synced' | 'not synced'): void {
      if (backend.transaction === undefined) apply([effect], durability)
      else backend.transaction.effects.push(effect)
    },
    draw({ transaction }: Backend, row: Omit<JournalRecord, 'seq'>): void {
      if (transaction === undefined) throw new Error('A row is drawn in a transaction.')
      const seq = ++drawn
      transaction.drawn.push({ ...row, seq })
      holders.add(transaction.id)
      note(`server: ${transaction.id} draws ${seq}`)
    },
    /** Raises the sequence, at once. */
    raise({ transaction }: Backend, seq: number): undefined {
      drawn = seq
      if (transaction !== undefined) holders.add(transaction.id)
      note(`server: the sequence is raised to ${seq}`)
    },
    async lock(backend: Backend, wanted: readonly string[]): Promise<undefined> {
      const { transaction } = backend
      const isTaken = () =>
        [...open].some((one) => one !== transaction && wanted.some((id) => one.locks.has(id)))
      while (isTaken()) await new Promise<void>((resolve) => waiters.push(resolve))
      // It may have been rolled back while it waited.
      if (transaction === undefined || !open.has(transaction)) await new Promise<never>(() => {})
      for (const id of wanted) transaction?.locks.add(id)
    },
  }
  current = api
  return api
}

function insert({ journal }: Tables, row: JournalRecord): Pick<Tables, 'journal'> {
  const index = journal.findIndex(({ seq }) => seq > row.seq)
  return { journal: journal.toSpliced(index === -1 ? journal.length : index, 0, row) }
}
