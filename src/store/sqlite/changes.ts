import type { DatabaseSync } from 'node:sqlite'
import { apply, type Change, type Outcome } from '../changes.ts'
import type { TokenRecord, TokenUse } from '../store.ts'
import { buildPlantStatements } from './plants.ts'
import { buildTokenStatements } from './tokens.ts'

/** Whatever is written to this engine: what both do with plants, and what the other does without a batch. */
export type SqliteChange = Change | OwnChange

type OwnChange = ForgetKeys | AddToken | AddFirstToken | RevokeToken | NoteTokenUses

interface ForgetKeys {
  readonly kind: 'forget keys'
  readonly usedBefore: number
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

interface NoteTokenUses {
  readonly kind: 'note token uses'
  readonly uses: readonly TokenUse[]
}

/** The statements of one connection. */
export type Statements = ReturnType<typeof buildStatements>

export function buildStatements(db: DatabaseSync) {
  return { plants: buildPlantStatements(db), tokens: buildTokenStatements(db) }
}

/** What a change answers. */
export type SqliteOutcome<One extends SqliteChange> = One extends Change
  ? Outcome<One>
  : One extends OwnChange
    ? ReturnType<(typeof ownSteps)[One['kind']]>
    : never

/** Does what the change says, inside the transaction of its batch, and answers what came of it. */
export function applyTo(statements: Statements, change: SqliteChange): unknown {
  if (!isOwn(change)) return apply(statements.plants.rows, change)
  const step: (statements: Statements, change: never) => unknown = ownSteps[change.kind]
  return step(statements, change as never)
}

function isOwn(change: SqliteChange): change is OwnChange {
  return change.kind in ownSteps
}

const ownSteps = {
  'forget keys': ({ plants }: Statements, change: ForgetKeys) =>
    plants.forgetKeys(change.usedBefore),
  'add token': ({ tokens }: Statements, { token }: AddToken) => tokens.add(token),
  'add first token': ({ tokens }: Statements, { token }: AddFirstToken) => tokens.addFirst(token),
  'revoke token': ({ tokens }: Statements, { id, at }: RevokeToken) => tokens.revoke(id, at),
  'note token uses': ({ tokens }: Statements, { uses }: NoteTokenUses) => tokens.noteUses(uses),
}
