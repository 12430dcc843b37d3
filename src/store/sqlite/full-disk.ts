import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Failure } from '../../contract/errors.ts'
import { findRoom, type Reserve } from './reserve.ts'
import type { SqliteChange } from './transactions.ts'
import type { SqliteWrite } from './writer.ts'

/**
 * On a full disk, a commit fails where it appends to the log, and so does a delete: the log grows
 * until a checkpoint has written all of it to the database, which is larger by then, and for which
 * there is no room either. With the space of the reserve, writes that free space or end a token are
 * appended all the same. Where the whole log fits into the database, a checkpoint follows, and the
 * next writes reuse the space of the log and the pages that were freed.
 */

/** Writes that end tokens, and may use all of the reserve. */
const endTokens: readonly SqliteChange['kind'][] = ['revoke token', 'delete tokens']
/** Writes that make room in the database, and leave something for the others. */
const makeRoom: readonly SqliteChange['kind'][] = [
  'delete',
  'trim journal',
  'drop changes',
  'forget keys',
]
/** Enough for some dozens of revocations. */
const keptForTokens = 256 * 1024

/**
 * Takes over a batch that failed. If the disk is full, it commits those writes that may use the
 * reserve; the outcome of each other is the failure.
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

/** Gives the reserve to the next commits of a connection. Returns a function that ends that. */
export function spend(db: DatabaseSync, reserve: Reserve): () => void {
  const { wal_autocheckpoint: pages } = db.prepare('PRAGMA wal_autocheckpoint').get() ?? {}
  // A checkpoint that cannot finish would use up all of the space.
  db.exec('PRAGMA wal_autocheckpoint = 0')
  const bytes = reserve.release()
  return () => {
    checkpoint(db)
    db.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
    reserve.take(bytes)
  }
}

/** The commits before it have succeeded: without it, the log only stays as long as it is. */
function checkpoint(db: DatabaseSync): void {
  try {
    if (fitsIntoDatabase(db)) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  } catch {}
}

/** Whether there is room for all pages of the log that the file of the database does not have. */
function fitsIntoDatabase(db: DatabaseSync): boolean {
  const path = db.location()
  if (path === null) return false
  const row = db
    .prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
    .get()
  return Number(row?.bytes) - statSync(path).size < findRoom(path)
}
