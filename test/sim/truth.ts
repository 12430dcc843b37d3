/**
 * What really happened, and the promises that follow from it. Every page, position, event and
 * delivery is judged when it leaves the service or arrives, by all that was committed until then
 * and all that may still be.
 */
import { type Cursor, toCursor, toOrder, toPosition } from '../../src/journal/position.ts'
import type { JournalPage } from '../../src/journal/row.ts'
import { type JournalRecord, journalId, server, since } from './postgres.ts'
import { world } from './world.ts'

/** A committed change. */
interface Change {
  readonly position: string
  readonly seq: number
  readonly order: string
  readonly type: string
  readonly plant: string
  readonly name: string
  /** The receivers that have taken it, and those that need not get it, or not in order. */
  readonly takenBy: Set<string>
  readonly notOwedTo: Set<string>
}

/** A copy of a client, or a follower, which has no copy. */
interface Follower {
  readonly name: string
  readonly plants: Map<string, string> | undefined
  /** Where it is; undefined until it is synced, or has seen a change. */
  position: string | undefined
  /** Whether it was told what an asynchronous standby lacks. Then it is right after a reset. */
  isMisled: boolean
}

/** What a mirror or a follower is told. */
export type Told =
  | { readonly type: 'reset' }
  | { readonly type: 'plant'; readonly plant: Plant }
  | { readonly type: 'synced'; readonly position: string }
  | { readonly type: `plant.${string}`; readonly position: string; readonly plant: Plant }

interface Plant {
  readonly id: bigint
  readonly name: string
}

export type Truth = ReturnType<typeof buildTruth>

/** The position under the first id of the journal: a process may rename it at its start. */
const toFirst = (position: string) => position.replace(/^\w+/, journalId)

const types: Record<string, string> = {
  ...{ c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' },
}

export function buildTruth() {
  /** The changes of every row, in the order of their commits. */
  let log: Change[][] = []
  /** All changes in the order of the journal. */
  let changes: Change[] = []
  let byPosition = new Map<string, Change>()
  /** Deleted while an earlier row was not committed. A reader that begins there never had these. */
  const holes = new Set<Change>()
  let era = 0
  const followers = new Set<Follower>()
  /** The last change of a plant that has arrived at a receiver. */
  const latest = new Map<string, string>()
  const { fail, note } = world()

  function sort(): void {
    const rows = log.toSorted(([one], [other]) => (one?.seq ?? 0) - (other?.seq ?? 0))
    changes = rows.flat()
    byPosition = new Map(changes.map((change) => [change.position, change]))
  }

  /** Whether a failover has not taken the row back. */
  function isKnown({ seq, nonce }: Cursor): boolean {
    const first = toPosition({ journalId, seq, nonce, index: 1 })
    return seq === since || byPosition.has(first)
  }

  const isPositionKnown = (position: string) => isKnown(toCursor(position) as Cursor)

  function checkSettled(position: string, what: string): void {
    const cursor = toCursor(position) as Cursor
    if (!isKnown(cursor)) return
    for (const { id, drawn } of server().open()) {
      const earlier = drawn.find(({ seq }) => seq < cursor.seq)
      if (earlier === undefined) continue
      fail(`${what} is at row ${cursor.seq}, but ${id} may still commit row ${earlier.seq}`)
    }
  }

  /** How many changes there are up to a position. */
  function countUpTo(position: string): number {
    const order = toOrder(position)
    let [low, high] = [0, changes.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((changes[middle] as Change).order <= order) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The changes that a reader gets after one position, up to another. */
  function listBetween(after: string, upTo: string): Change[] {
    const between = changes.slice(countUpTo(after), countUpTo(upTo))
    return between.filter((change) => !holes.has(change) || change.position === upTo)
  }

  function toState(position: string): Map<string, string> {
    const plants = new Map<string, string>()
    for (const { type, plant, name } of changes.slice(0, countUpTo(position))) {
      if (type === 'plant.deleted') plants.delete(plant)
      else plants.set(plant, name)
    }
    return plants
  }

  function checkSynced({ name, plants, isMisled }: Follower, position: string): void {
    if (plants === undefined || isMisled || !isPositionKnown(position)) return
    const [shown, state] = [show(plants), show(toState(position))]
    if (shown !== state) fail(`${name} has ${shown} at ${position}, where the source had ${state}`)
  }

  /** Each event must be the change after the one before it. */
  function checkEvent({ name, position: before }: Follower, position: string, plant: Plant): void {
    if (before === undefined || !isPositionKnown(before) || !isPositionKnown(position)) return
    const [next] = listBetween(before, position)
    if (next?.position !== position) {
      fail(`${name} gets ${position} after ${before}, not ${next?.position ?? 'a later one'}`)
    } else if (next.name !== plant.name || next.plant !== String(plant.id)) {
      fail(`${name} gets plant ${plant.id} as ${plant.name} at ${position}, not ${next.name}`)
    }
  }

  function tell(follower: Follower, told: Told): void {
    const { plants, name } = follower
    const position = 'position' in told ? toFirst(told.position) : ''
    note(`${name}: ${told.type} ${position}`)
    if (told.type === 'reset') {
      plants?.clear()
      follower.position = undefined
      follower.isMisled = false
      return
    }
    if (told.type === 'synced') checkSynced(follower, position)
    else {
      if (told.type === 'plant.deleted') plants?.delete(String(told.plant.id))
      else plants?.set(String(told.plant.id), told.plant.name)
      // Until it is synced, a mirror is told again of changes that its list has shown.
      if (told.type === 'plant' || (plants !== undefined && follower.position === undefined)) return
      checkEvent(follower, position, told.plant)
    }
    follower.position = position
    if (!isPositionKnown(position)) follower.isMisled = true
  }

  const isOwed = (receiver: string, { takenBy, notOwedTo, type }: Change) =>
    !takenBy.has(receiver) && !notOwedTo.has(receiver) && wants(receiver, type)

  function checkArrival(receiver: string, { plant, order, position, notOwedTo }: Change): void {
    const key = `${receiver} ${plant}`
    const before = latest.get(key) ?? ''
    if (order < before && !notOwedTo.has(receiver)) {
      fail(`${receiver} gets ${position} of plant ${plant} after a later change (${before})`)
    }
    if (order > before) latest.set(key, order)
    for (const one of changes) {
      if (one.order >= order) break
      if (one.plant === plant && isOwed(receiver, one)) {
        fail(`${receiver} gets ${position} of plant ${plant} before it took ${one.position}`)
      }
    }
  }

  return {
    commit({ seq, nonce, changes: text }: JournalRecord): void {
      const list = text.split('\n').map((line, index): Change => {
        const [kind = '', , plant = '', name = '""'] = line.split('\t')
        const position = toPosition({ journalId, seq, nonce, index: index + 1 })
        return {
          ...{ position, seq, order: toOrder(position), type: types[kind] ?? '', plant },
          ...{ name: JSON.parse(name), takenBy: new Set(), notOwedTo: new Set() },
        }
      })
      log.push(list)
      sort()
    },

    /** Only this many rows of the log are left. */
    failOver(commits: number): void {
      const lost = log.slice(commits).flat()
      era++
      log = log.slice(0, commits)
      sort()
      // Saves may be lost, so deliveries are repeated.
      latest.clear()
      for (const follower of followers) {
        // Nothing takes back what a copy got before its position. A list shows anything.
        const at = follower.position && toOrder(follower.position)
        follower.isMisled ||= lost.some(({ order }) => at === undefined || order <= at)
      }
    },

    noteDeleted(rows: readonly JournalRecord[]): void {
      const drawn = [...server().open()].flatMap((one) => one.drawn.map(({ seq }) => seq))
      const lowest = Math.min(...drawn)
      const deleted = new Set(rows.map(({ seq }) => seq))
      for (const change of changes) {
        if (change.seq > lowest && deleted.has(change.seq)) holes.add(change)
      }
      for (const { id, position } of server().tables().receivers) {
        const unread = changes.slice(countUpTo(String(position)))
        for (const { seq, notOwedTo } of unread) if (deleted.has(seq)) notOwedTo.add(String(id))
      }
    },

    noteGivenUp(receiver: string, position: string): void {
      byPosition.get(toFirst(position))?.notOwedTo.add(receiver)
    },

    checkPage(from: string, page: JournalPage | 'gone' | 'off'): void {
      if (typeof page === 'string') return
      const { events } = page
      const [begin, end] = [toFirst(page.begin), toFirst(page.end)]
      checkSettled(end, 'the end of a page')
      checkSettled(begin, 'the beginning of a page')
      if (!isPositionKnown(begin) || !isPositionKnown(end)) return
      const [first] = server().tables().journal
      const { seq } = toCursor(begin) as Cursor
      if (from === 'oldest' && first !== undefined && first.seq < seq) {
        fail(`a page from the oldest change begins at row ${seq}, but row ${first.seq} is there`)
      }
      const told = new Set(events.map(({ position }) => toFirst(position)))
      const missing = listBetween(begin, end).find(({ position }) => !told.has(position))
      if (missing !== undefined) fail(`a page up to ${end} lacks ${missing.position}`)
    },

    /** Call it when the end is asked for. It returns what judges the answer. */
    askEnd(): (position: string) => void {
      const eraBefore = era
      const newest = changes.at(-1)?.seq ?? since
      return (position) => {
        checkSettled(position, 'the end of the journal')
        const { seq } = toCursor(position) as Cursor
        if (era !== eraBefore || seq >= newest) return
        fail(`the end of the journal is at row ${seq}, but row ${newest} was there before`)
      }
    },

    add(name: string, kind: 'mirror' | 'follower') {
      const plants = kind === 'mirror' ? new Map<string, string>() : undefined
      const follower: Follower = { name, plants, position: undefined, isMisled: false }
      followers.add(follower)
      return {
        tell: (told: Told): void => tell(follower, told),
        leave: (): unknown => followers.delete(follower),
      }
    },

    /** A process begins to send to a receiver. Each request arrives, and may be taken. */
    addSender(receiver: string) {
      const eraBefore = era
      return {
        arrive(position: string): void {
          note(`${receiver}: gets ${position}`)
          const change = byPosition.get(toFirst(position))
          // What was known before a failover may be repeated after it.
          if (change !== undefined && era === eraBefore) checkArrival(receiver, change)
        },
        take(position: string): void {
          note(`${receiver}: takes ${position}`)
          byPosition.get(toFirst(position))?.takenBy.add(receiver)
        },
      }
    },

    /** What is not yet as it must be in the end. */
    findUnfinished(): string[] {
      const { plants, deliveries, receivers } = server().tables()
      const last = changes.at(-1)?.position ?? ''
      const unfinished: string[] = []
      for (const { name, position, isMisled, plants: own } of followers) {
        if (toOrder(position ?? '') < toOrder(last)) {
          unfinished.push(`${name} is at ${position ?? 'no position'}, not at ${last}`)
        } else if (own !== undefined && position === undefined) {
          unfinished.push(`${name} is not synced`)
        } else if (own !== undefined && !isMisled && show(own) !== show(plants)) {
          unfinished.push(`${name} has ${show(own)}, not ${show(plants)}`)
        }
      }
      for (const { id } of receivers) {
        const owed = changes.find((change) => isOwed(id, change))
        if (owed !== undefined) unfinished.push(`${id} has not got ${owed.position}`)
      }
      for (const row of deliveries) {
        if (row.due_at !== null) unfinished.push(`the delivery of ${row.position} waits`)
      }
      return unfinished
    },
  }
}

function wants(receiver: string, type: string): boolean {
  const { receivers } = server().tables()
  return receivers.some(({ id, types }) => id === receiver && types.includes(type))
}

function show(plants: ReadonlyMap<string, string>): string {
  return [...plants]
    .sort(([one], [other]) => Number(one) - Number(other))
    .map(([id, name]) => `${id}:${name}`)
    .join(' ')
}
