import type { DatabaseSync } from 'node:sqlite'
import { Failure } from '../../contract/errors.ts'
import { type Reserve, spend } from './reserve.ts'
import type { SqliteChange } from './transactions.ts'
import type { SqliteWrite } from './writer.ts'

/**
 * On a full disk a commit fails when it appends to the WAL, and so does a delete: the WAL grows
 * until a checkpoint has copied it into the database, which has no room to grow either. The reserve
 * gives writes that free space or end a token the room to be appended. If the whole WAL then fits
 * into the database, a checkpoint follows, and later writes reuse the WAL and the freed pages.
 */

/** Writes that end tokens may use all of the reserve. */
const endTokens: readonly SqliteChange['kind'][] = ['revoke token', 'delete tokens']
/** Writes that free space in the database leave a part of the reserve to the others. */
const makeRoom: readonly SqliteChange['kind'][] = [
  'delete',
  'trim journal',
  'drop changes',
  'forget keys',
]
/** Enough for some dozens of revocations. */
const keptForTokens = 256 * 1024

/**
 * Handles a failed batch. If the disk is full, it commits the writes that may use the reserve, and
 * fails the others.
 */
export function buildRescue(
  db: DatabaseSync,
  reserve: Reserve,
  commit: (batch: readonly SqliteWrite[]) => unknown[] | Promise<unknown[]>,
) {
  return async (batch: readonly SqliteWrite[], failure: unknown): Promise<unknown[]> => {
    if (!(failure instanceof Failure) || failure.number !== 50700) throw failure
    const size = reserve.size()
    const kinds = size > keptForTokens ? [...endTokens, ...makeRoom] : endTokens
    let rest = batch.filter(({ change }) => kinds.includes(change.kind))
    if (size === 0 || rest.length === 0) throw failure
    const outcomes = new Map<SqliteWrite, unknown>()
    const end = spend(db, reserve)
    try {
      while (rest.length > 0) {
        const made = await commit(rest)
        for (const [index, outcome] of made.entries()) {
          outcomes.set(rest[index] as SqliteWrite, outcome)
        }
        rest = rest.slice(made.length)
      }
    } catch (error) {
      if (outcomes.size === 0) throw error
    } finally {
      end()
    }
    return batch.map((write) => (outcomes.has(write) ? outcomes.get(write) : failure))
  }
}
