import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { explainErrno } from '../../errno.ts'
import { followLink } from '../../paths.ts'
import {
  examineClock,
  examineSchema,
  examineTokens,
  ok,
  toDo,
  type Verdict,
  type Verdicts,
} from '../finding.ts'
import { UnusableStore } from '../store.ts'
import { schemaVersion } from '../tables.ts'
import { openTimeoutMs, readSqliteVersion } from './connection.ts'
import { openDatabase, readPragma } from './database.ts'
import { explainSqlite, isSqliteError } from './failures.ts'
import { identifyFile, readSize } from './file.ts'
import { findTrigger } from './migrations.ts'
import { defaultWalBounds } from './snapshot.ts'

const gibibyte = 1024 ** 3
/** Free space below this, or below this share of the disk, is too little. */
const minFreeBytes = gibibyte
const minFreeShare = 0.05

/** Examines the file of a store, and the disk that it is on. */
export function examineFile(link: string): Verdicts {
  const path = followLink(link)
  const file = attempt(() =>
    identifyFile(path) === 'new' ? toDo(`${path} is empty: no store was made yet`) : ok(path),
  )
  if (file.state === 'to do') return { file }
  return {
    file,
    permissions: attempt(() => examinePermissions(path)),
    SQLite: attempt(() => withFile(path, (db) => ok(`release ${readSqliteVersion(db)}`))),
    ...examineContent(path),
    'free space': attempt(() => examineSpace(path)),
    log: attempt(() => examineLog(path)),
  }
}

/** An examination that throws is a toDo as well. */
function attempt(examine: () => Verdict): Verdict {
  try {
    return examine()
  } catch (error) {
    return toDo(explainFailure(error))
  }
}

function explainFailure(error: unknown): string {
  if (error instanceof UnusableStore) return error.message
  if (isSqliteError(error)) return explainSqlite(error)
  if (!(error instanceof Error) || !('syscall' in error)) return String(error)
  return 'path' in error ? `${error.path}: ${explainErrno(error)}` : explainErrno(error)
}

function examinePermissions(path: string): Verdict {
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.R_OK | constants.W_OK | constants.X_OK)
  const files = [path, `${path}-wal`, `${path}-shm`].filter(existsSync)
  // Windows has other permissions.
  const isOpen = (file: string) =>
    process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0
  const open = files.filter(isOpen)
  if (open.length === 0) return ok('only the owner can read and write the files')
  return toDo(`other users can read the store: chmod 600 ${open.join(' ')}`)
}

/** Everything that is read from the database itself. */
function examineContent(path: string): Verdicts {
  try {
    return withFile(path, (db) => {
      const integrity = examineIntegrity(db)
      const trigger = findTrigger(db)
      if (trigger !== undefined) return { integrity, schema: toTampered(trigger) }
      const version = Number(readPragma(db, 'user_version'))
      const schema = examineSchema(version)
      // Nobody knows the tables of a newer release.
      if (version === 0 || version > schemaVersion) return { integrity, schema }
      const tokens = db.prepare('SELECT name, expires_at, revoked_at FROM tokens').all()
      const { newest } = db.prepare('SELECT max(created_at) AS newest FROM tokens').get() ?? {}
      const now = Date.now()
      return {
        integrity,
        schema,
        tokens: examineTokens(tokens, now),
        clock: examineClock(Number(newest), now),
      }
    })
  } catch (error) {
    return { integrity: toDo(explainFailure(error)) }
  }
}

function examineIntegrity(db: DatabaseSync): Verdict {
  const said = readPragma(db, 'integrity_check(1)')
  if (said === 'ok') return ok('all pages and indexes are intact')
  return toDo(`damaged (${said}): stop the service, and restore the last backup`)
}

function toTampered(trigger: string): Verdict {
  return toDo(`the file has ${trigger}: somebody has changed it; restore a backup from before that`)
}

function examineSpace(path: string): Verdict {
  const { bavail, blocks, bsize } = statfsSync(dirname(path))
  const free = bavail * bsize
  const text = `${(free / gibibyte).toFixed(1)} GiB are free`
  if (free >= minFreeBytes && bavail / blocks >= minFreeShare) return ok(text)
  return toDo(`only ${text}: make room, or move the store to a larger disk`)
}

function examineLog(path: string): Verdict {
  const bytes = readSize(`${path}-wal`)
  const text = `${(bytes / 1024 ** 2).toFixed(1)} MiB`
  if (bytes <= defaultWalBounds.refuseBytes) return ok(text)
  return toDo(`${text}: a long export keeps it from shrinking; wait for it, or restart`)
}

function withFile<Value>(path: string, use: (db: DatabaseSync) => Value): Value {
  const db = openDatabase(pathToFileURL(path), { readOnly: true, timeout: openTimeoutMs })
  try {
    return use(db)
  } finally {
    db.close()
  }
}
