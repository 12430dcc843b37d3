import { unreachable } from '../failures.ts'
import type { Store } from '../store.ts'
import { buildWatch } from '../watch.ts'
import { buildHorizon, type Horizon } from './horizon.ts'
import { journalEnd, lastRow } from './journal.ts'
import { readJournal } from './journal-pages.ts'
import type { Primary } from './primary.ts'
import type { Session } from './session.ts'
import type { Sql } from './sql.ts'

type Read = <Value>(lane: 'lookUps' | 'pages', run: (sql: Sql) => Promise<Value>) => Promise<Value>

/** How often a watched journal is looked at for changes of other processes. */
const lookMs = 200
/** When a change that waits for one under way is looked at again. */
const unsettledMs = 10

/** The journal as its readers see it. */
export interface Feed {
  readonly read: Store['readJournal']
  readonly end: Store['journalEnd']
  readonly watch: Store['watchJournal']
  /** Tells watchers of a commit of this process. */
  wake(): void
}

export function buildFeed(primary: Primary, read: Read): Feed {
  const watch = buildWatch(() => read('lookUps', lastRow), lookMs)
  const horizons = new WeakMap<Session, Horizon>()

  /** Each session learns anew what has settled: its server may have lost what another had. */
  async function withHorizon<Value>(
    run: (sql: Sql, horizon: Horizon) => Promise<Value>,
  ): Promise<Value> {
    const session = primary.session()
    if (session === undefined) throw unreachable()
    const horizon = horizons.get(session) ?? buildHorizon(() => watch.wakeIn(unsettledMs))
    horizons.set(session, horizon)
    return read('pages', (sql) => run(sql, horizon))
  }

  return {
    read: (after, limit) => withHorizon((sql, horizon) => readJournal(sql, horizon, after, limit)),
    end: () => withHorizon(journalEnd),
    watch: watch.add,
    wake: watch.wake,
  }
}
