import { setTimeout as sleep } from 'node:timers/promises'
import { type PlantStore, PlantStoreError } from '../../client/index.ts'
import { type Config, type Environment, WrongConfig } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { boundJournal } from '../journal/bound.ts'
import { toCursor, toPosition } from '../journal/position.ts'
import { trimOld } from '../journal/trim.ts'
import { repeat } from '../repeat.ts'
import { locateStore } from '../store/locate.ts'
import { openStore, type StoreLocation } from '../store/open.ts'
import { type Followed, followTokenId, type Position, type Store } from '../store/store.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { Overtaken, type Written, writeChanges } from './follower.ts'
import { tuneHeapForRows } from './memory.ts'
import { toCount } from './progress.ts'
import { explainService, findToken, openClient } from './service.ts'
import { stopOnSignal } from './signals.ts'
import { exists, requirePersistent, toName } from './stores.ts'
import { type Context, type Terminal, toPrintable, warnOfPlainHttp } from './terminal.ts'

interface FollowFlags {
  readonly from: string
  readonly tokenFile?: string
  readonly to: string
}

/** The pause before another attempt, when the source or the copy has failed. */
const retryMs = 1_000
/** How often the journal of the copy is trimmed. */
const trimMs = 60_000
/** The time between two states of the line on a terminal, and between two lines elsewhere. */
const statusMs = { terminal: 1_000, lines: 60_000 }
const wipe = '\r\u001b[K'

/** Fills a store with the plants of a service, and keeps it in sync until a signal. */
export async function follow(
  flags: FollowFlags,
  { config, env, terminal }: Context<Config>,
): Promise<void> {
  tuneHeapForRows()
  const to = toDestination(flags, env)
  const missing = '--from needs a token: set PLANT_STORE_TOKEN or --token-file.'
  const token = findToken(flags, env, missing)
  const client = openClient({ url: flags.from, token }, 'from')
  const source = new URL(flags.from).href.replace(/\/+$/, '')
  warnOfPlainHttp(terminal, 'the token and the plants', source)
  const signal = stopOnSignal()
  if (!exists(to)) await requireService(client, source, signal)
  if (signal.aborted) return
  const store = await openStore(to)
  const bound = boundJournal(store, config.journalMaxBytes)
  // Only services trim, and none may be running on a copy. What fails is tried again.
  const stopTrimming = repeat(
    () => trimOld(store, config.journalKeepMs).then(bound.keep),
    trimMs,
    () => {},
  )
  const status = startStatus(client, terminal)
  try {
    await keepTrue({ client, store, to, source, status, signal })
  } finally {
    stopTrimming()
    status.stop()
    await store.close()
  }
  terminal.tell(`Stopped. The same command continues ${status.describe()}.`)
}

function toDestination({ to }: FollowFlags, env: Environment): StoreLocation {
  const { location, mistake } = locateStore('--to', to, env)
  if (location === undefined) throw new WrongConfig([mistake])
  requirePersistent(location)
  return location
}

/** Makes sure that the service answers, so that a failed first start leaves no store behind. */
async function requireService(client: PlantStore, url: string, signal: AbortSignal): Promise<void> {
  try {
    await client.position({ signal })
  } catch (error) {
    if (!signal.aborted) throw explainService(error, url)
  }
}

/**
 * How far the store is in sync: no position if it has to be filled. Refuses a store with plants
 * that did not come from this source: a reset would remove them.
 */
async function requireCopy(
  store: Store,
  to: StoreLocation,
  source: string,
): Promise<Pick<Followed, 'position' | 'revision'>> {
  const followed = await store.readFollowed()
  const { plants } = await store.listPlants({ after: undefined, tag: undefined, limit: 1 })
  if (plants.length === 0) return { position: undefined, revision: followed?.revision ?? 0 }
  if (followed === undefined) throw refuse(to, `holds plants and is no copy of ${source}`)
  if (followed.source !== source) throw refuse(to, `is a copy of ${followed.source}`)
  if (await isWrittenByOthers(store)) {
    throw refuse(to, 'was changed by something else since it was last a copy')
  }
  return followed
}

/** Whether the last change came from elsewhere, as far as the journal of the copy shows. */
async function isWrittenByOthers(store: Store): Promise<boolean> {
  const end = toCursor(await store.journalEnd())
  if (end === undefined || end.index === 0) return false
  const page = await store.readJournal(toPosition({ ...end, index: end.index - 1 }), 1)
  return typeof page !== 'string' && page.events[0]?.tokenId !== followTokenId
}

function refuse(to: StoreLocation, why: string): CommandFailed {
  const message = `${toName(to)} ${why}. Nothing was written: name an empty store.`
  return new CommandFailed(exitCodes.data, message)
}

function refuseSecond(to: StoreLocation): CommandFailed {
  const message = `Another process writes to the copy ${toName(to)}, so this one has stopped.`
  return new CommandFailed(exitCodes.data, message)
}

interface Pair {
  readonly client: PlantStore
  readonly store: Store
  readonly to: StoreLocation
  readonly source: string
  readonly status: Status
  readonly signal: AbortSignal
}

/**
 * Follows until the signal. Once the copy has something, a source or a copy that fails is waited
 * for: the position is in the copy, so nothing is lost and nothing is written twice.
 */
async function keepTrue({ client, store, to, source, status, signal }: Pair): Promise<void> {
  // The last write of a process that was killed may arrive after this one has begun.
  let mayBeOvertaken = true
  while (!signal.aborted) {
    const failed = new AbortController()
    try {
      const { position: after, revision } = await requireCopy(store, to, source)
      status.begin(after)
      const both = AbortSignal.any([signal, failed.signal])
      await writeChanges({
        store,
        source,
        revision,
        changes: client.mirror({ after, signal: both }),
        onWritten(written) {
          mayBeOvertaken = false
          status.note(written)
        },
        onFailed: (error) => failed.abort(error),
      })
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Overtaken && !mayBeOvertaken) throw refuseSecond(to)
      const isTemporary =
        error instanceof Failure ||
        error instanceof Overtaken ||
        (error instanceof PlantStoreError && (error.status === undefined || error.status >= 500))
      const hasBegun = isTemporary && (await store.readFollowed().catch(() => true)) !== undefined
      if (!hasBegun) throw explainService(error, source)
      status.fail(error)
      mayBeOvertaken = !(error instanceof Overtaken)
      await sleep(retryMs, undefined, { signal }).catch(() => {})
    }
  }
}

/** Says on one line what happens: updated on a terminal, now and then elsewhere. */
interface Status {
  begin(after: Position | undefined): void
  note(written: Written): void
  fail(error: unknown): void
  /** Describes where the copy is. */
  describe(): string
  stop(): void
}

function startStatus(client: PlantStore, { errors, tell }: Terminal): Status {
  const isLine = errors.isTTY === true
  let state: 'starting' | 'filling' | 'following' | 'failing' = 'starting'
  let position: string | undefined
  let changes = 0
  let behind = ''
  let shown = ''

  function show(text: string): void {
    if (isLine) errors.write(`${wipe}${toPrintable(text).slice(0, (errors.columns ?? 80) - 1)}`)
    else if (text !== shown) tell(text)
    shown = text
  }

  function toLine(): string {
    if (state === 'filling') return `follow: filling, ${toCount(changes, 'plants')} so far`
    return `follow: ${behind}, ${toCount(changes, 'changes')} so far`
  }

  /** The end of the journal shows whether an idle copy has everything. */
  async function report(): Promise<void> {
    if (state === 'filling') show(toLine())
    if (state !== 'following') return
    const before = position
    const end = await client.position({ signal: AbortSignal.timeout(statusMs.terminal) })
    if (end === position) behind = 'up to date'
    else if (position === before) behind = 'behind, and waiting for the source'
    show(toLine())
  }

  const pauseMs = isLine ? statusMs.terminal : statusMs.lines
  const stopReports = repeat(report, pauseMs, () => show('follow: the source does not answer'))
  // Neither a stream of events nor a timer that is unref'd keeps a process alive.
  const alive = setInterval(() => {}, 60_000)

  return {
    begin(after) {
      position = after
      if (after === undefined) return
      state = 'following'
      behind = 'catching up'
      show(toLine())
    },
    note(written) {
      const next = written.isFilling ? 'filling' : 'following'
      const isNews = next !== state
      if (isNews) changes = 0
      state = next
      position = written.position
      changes += written.changes
      const { changedAt } = written
      // The clocks of two machines differ.
      const lagMs = changedAt === undefined ? 0 : Math.max(0, Date.now() - changedAt)
      behind = `${(lagMs / 1000).toFixed(1)} s behind`
      if (isNews) show(toLine())
    },
    fail(error) {
      state = 'failing'
      show(`follow: ${error instanceof Error ? error.message : String(error)} Trying again.`)
    },
    describe: () => (position === undefined ? 'from the beginning' : `after ${position}`),
    stop() {
      stopReports()
      clearInterval(alive)
      if (isLine && shown !== '') errors.write(wipe)
    },
  }
}
