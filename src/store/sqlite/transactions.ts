import type { DatabaseSync } from 'node:sqlite'
import {
  apply,
  type Change,
  type Outcome,
  type RecordedChanges,
  recordChanges,
} from '../changes.ts'
import type { TokenRecord, TokenUse } from '../store.ts'
import { isBusy, toCommitFailure, toRefusal } from './failures.ts'
import { buildJournalStatements } from './journal.ts'
import { buildPlantStatements } from './plants.ts'
import { buildReceiverStatements } from './receivers.ts'
import { buildTokenStatements } from './tokens.ts'

/** Every write to SQLite: changes of plants, and writes that PostgreSQL does not batch. */
export type SqliteChange = Change | OwnChange

type OwnChange =
  | ForgetKeys
  | TrimJournal
  | DropChanges
  | AddToken
  | AddFirstToken
  | RevokeToken
  | DeleteTokens
  | NoteTokenUses
  | WriteReceivers

interface ForgetKeys {
  readonly kind: 'forget keys'
  readonly usedBefore: number
}

interface TrimJournal {
  readonly kind: 'trim journal'
  readonly before: number
}

interface DropChanges {
  readonly kind: 'drop changes'
  readonly first: number
  readonly bytes: number
}

interface AddToken {
  readonly kind: 'add token'
  readonly token: TokenRecord
}

interface AddFirstToken {
  readonly kind: 'add first token'
  readonly token: TokenRecord
}

interface RevokeToken {
  readonly kind: 'revoke token'
  readonly id: string
  readonly at: number
}

interface DeleteTokens {
  readonly kind: 'delete tokens'
  readonly ids: readonly string[]
}

interface NoteTokenUses {
  readonly kind: 'note token uses'
  readonly uses: readonly TokenUse[]
}

export type ReceiverWrites = Statements['receivers']['writes']

/** A write to receivers, by name and arguments. */
interface WriteReceivers {
  readonly kind: 'write receivers'
  readonly write: keyof ReceiverWrites
  readonly args: readonly unknown[]
}

/** The outcome of a change. */
export type SqliteOutcome<One extends SqliteChange> = One extends Change
  ? Outcome<One>
  : One extends OwnChange
    ? ReturnType<(typeof ownAppliers)[One['kind']]>
    : never

/** The prepared statements of one connection. */
export type Statements = ReturnType<typeof buildStatements>

export function buildStatements(db: DatabaseSync) {
  return {
    plants: buildPlantStatements(db),
    tokens: buildTokenStatements(db),
    receivers: buildReceiverStatements(db),
    journal: buildJournalStatements(db),
  }
}

/** One outcome for each change, and how long the transaction took. */
export interface Committed {
  readonly outcomes: unknown[]
  /** From the first statement to the end of `COMMIT`. */
  readonly commitMs: number
  /** `COMMIT` alone, which writes and syncs the WAL; undefined if it was not synced. */
  readonly syncMs: number | undefined
}

/** Runs transactions on one connection, in any thread. */
export interface Transactions {
  /** Begins a transaction for these changes, unless another connection holds the lock. */
  tryBegin(changes: readonly SqliteChange[]): boolean
  /**
   * Applies the changes and commits them. They are on disk when it returns, unless all of them are
   * repeatable. If they turn out to be large, it applies only the first ones.
   */
  run(changes: readonly SqliteChange[]): Committed
}

/** Deletes write the deleted plant to the journal, so they can exceed their estimated size. */
const maxRecorded = 4 * 1024 * 1024

export function buildTransactions(db: DatabaseSync, statements: Statements): Transactions {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const recorder = recordChanges(statements.plants.rows)
  let sync: 'FULL' | 'NORMAL' = 'FULL'

  /**
   * Called before a transaction, because SQLite ignores the pragma inside one. A connection opens
   * with FULL, as `durability.ts` proves. Only transactions of repeatable changes run with NORMAL.
   */
  function setSync(wanted: typeof sync): void {
    if (wanted === sync) return
    db.exec(`PRAGMA synchronous = ${wanted}`)
    sync = wanted
  }

  return {
    tryBegin(changes) {
      try {
        setSync(changes.every(isRepeatable) ? 'NORMAL' : 'FULL')
        begin.run()
        return true
      } catch (error) {
        if (isBusy(error)) return false
        throw toRefusal(error)
      }
    },

    // Synchronous from BEGIN to COMMIT: an `await` in between would mix requests.
    run(changes) {
      let toFailure = toRefusal
      const startedAt = performance.now()
      try {
        // Another process may have switched the journal on or off since the last commit.
        const used = statements.journal.isOn() ? recorder : undefined
        const outcomes: unknown[] = []
        for (const change of changes) {
          outcomes.push(applyTo(statements, used, change))
          if (recorder.recorded() > maxRecorded) break
        }
        for (const row of recorder.take()) statements.journal.add(row)
        toFailure = toCommitFailure
        const syncedFrom = performance.now()
        commit.run()
        const endedAt = performance.now()
        const syncMs = sync === 'FULL' ? endedAt - syncedFrom : undefined
        return { outcomes, commitMs: endedAt - startedAt, syncMs }
      } catch (error) {
        rollBack()
        throw toFailure(error)
      }
    },
  }

  // Reports the first failure, even if the rollback fails as well.
  function rollBack(): void {
    recorder.discard()
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {}
  }
}

function applyTo(
  statements: Statements,
  recorder: RecordedChanges | undefined,
  change: SqliteChange,
): unknown {
  if (!isOwn(change)) {
    return recorder === undefined ? apply(statements.plants.rows, change) : recorder.apply(change)
  }
  const applyOne: (statements: Statements, change: never) => unknown = ownAppliers[change.kind]
  return applyOne(statements, change as never)
}

/**
 * Writes of webhook senders are not synced, because a sync would cost more than the deliveries. A
 * power cut loses those since the last synced commit, and the deliveries are repeated.
 */
export function isRepeatable(change: SqliteChange): boolean {
  return change.kind === 'write receivers' && (change.write === 'take' || change.write === 'save')
}

/** Whether a write changes no plant. */
export function isOwn(change: SqliteChange): change is OwnChange {
  return change.kind in ownAppliers
}

const ownAppliers = {
  'forget keys': ({ plants }: Statements, change: ForgetKeys) =>
    plants.forgetKeys(change.usedBefore),
  'trim journal': ({ journal }: Statements, { before }: TrimJournal) => journal.trim(before),
  'drop changes': ({ journal }: Statements, { first, bytes }: DropChanges) =>
    journal.drop(first, bytes),
  'add token': ({ tokens }: Statements, { token }: AddToken) => tokens.add(token),
  'add first token': ({ tokens }: Statements, { token }: AddFirstToken) => tokens.addFirst(token),
  'revoke token': ({ tokens }: Statements, { id, at }: RevokeToken) => tokens.revoke(id, at),
  'delete tokens': ({ tokens }: Statements, { ids }: DeleteTokens) => tokens.delete(ids),
  'note token uses': ({ tokens }: Statements, { uses }: NoteTokenUses) => tokens.noteUses(uses),
  'write receivers'({ receivers }: Statements, { write, args }: WriteReceivers): unknown {
    const run: (...args: never[]) => unknown = receivers.writes[write]
    return run(...(args as never[]))
  },
}
