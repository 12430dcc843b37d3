import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { explainErrno } from '../../errno.ts'
import {
  examineClock,
  examineSchema,
  examineTokens,
  type Finding,
  ok,
  type TokenEnd,
  warning,
} from '../finding.ts'
import { UnusableStore } from '../store.ts'
import { openTimeoutMs, readSqliteVersion } from './connection.ts'
import { explainSqlite, isSqliteError } from './failures.ts'
import { followLink, identifyFile, readSize } from './file.ts'
import { findTrigger, migrations } from './migrations.ts'
import { openDatabase, readPragma } from './open-database.ts'
import { defaultWalBounds } from './snapshot.ts'

const gibibyte = 1024 ** 3
/** Free space below this, or below this share of the disk, is too little. */
const minFreeBytes = gibibyte
const minFreeShare = 0.05

/** Examines the file of a store, and the disk that it is on. */
export function examineFile(link: string): Finding[] {
  const path = followLink(link)
  const found = attempt('file', () => {
    if (identifyFile(path) === 'new')
      return warning('file', `${path} is empty: no store was made yet`)
    return ok('file', path)
  })
  if (found.state === 'to do') return [found]
  return [
    found,
    attempt('permissions', () => examinePermissions(path)),
    attempt('SQLite', () =>
      withFile(path, (db) => ok('SQLite', `release ${readSqliteVersion(db)}`)),
    ),
    ...examineContent(path),
    attempt('free space', () => examineSpace(path)),
    attempt('log', () => examineLog(path)),
  ]
}

/** An examination that throws is a warning as well. */
function attempt(subject: string, examine: () => Finding): Finding {
  try {
    return examine()
  } catch (error) {
    return warning(subject, explainFailure(error))
  }
}

function explainFailure(error: unknown): string {
  if (error instanceof UnusableStore) return error.message
  if (isSqliteError(error)) return explainSqlite(error)
  if (!(error instanceof Error) || !('syscall' in error)) return String(error)
  return 'path' in error ? `${error.path}: ${explainErrno(error)}` : explainErrno(error)
}

function examinePermissions(path: string): Finding {
  const subject = 'permissions'
  accessSync(path, constants.R_OK | constants.W_OK)
  accessSync(dirname(path), constants.R_OK | constants.W_OK | constants.X_OK)
  const files = [path, `${path}-wal`, `${path}-shm`].filter(existsSync)
  // Windows has other permissions.
  const isOpen = (file: string) =>
    process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0
  const open = files.filter(isOpen)
  if (open.length === 0) return ok(subject, 'only the owner can read and write the files')
  return warning(subject, `other users can read the store: chmod 600 ${open.join(' ')}`)
}

/** Everything that is read from the database itself. */
function examineContent(path: string): Finding[] {
  try {
    return withFile(path, (db) => {
      const version = Number(readPragma(db, 'user_version'))
      const trigger = findTrigger(db)
      if (trigger !== undefined) return [examineIntegrity(db), toTampered(trigger)]
      if (version === 0) return [warning('schema', 'no store was made yet: start the service')]
      const schema = examineSchema(version, migrations.length)
      const tokens = db.prepare('SELECT name, expires_at, revoked_at FROM tokens').all()
      const { newest } = db.prepare('SELECT max(created_at) AS newest FROM tokens').get() ?? {}
      const now = Date.now()
      return [
        examineIntegrity(db),
        schema,
        examineTokens(tokens as unknown as TokenEnd[], now),
        examineClock(Number(newest), now),
      ]
    })
  } catch (error) {
    return [warning('integrity', explainFailure(error))]
  }
}

function examineIntegrity(db: DatabaseSync): Finding {
  const said = readPragma(db, 'integrity_check(1)')
  if (said === 'ok') return ok('integrity', 'all pages and indexes are intact')
  return warning('integrity', `damaged (${said}): stop the service, and restore the last backup`)
}

function toTampered(trigger: string): Finding {
  return warning(
    'schema',
    `the file has ${trigger}: somebody has changed it; restore a backup from before that`,
  )
}

function examineSpace(path: string): Finding {
  const { bavail, blocks, bsize } = statfsSync(dirname(path))
  const free = bavail * bsize
  const text = `${(free / gibibyte).toFixed(1)} GiB are free`
  if (free >= minFreeBytes && bavail / blocks >= minFreeShare) return ok('free space', text)
  return warning('free space', `only ${text}: make room, or move the store to a larger disk`)
}

function examineLog(path: string): Finding {
  const bytes = readSize(`${path}-wal`)
  const text = `${(bytes / 1024 ** 2).toFixed(1)} MiB`
  if (bytes <= defaultWalBounds.refuseBytes) return ok('log', text)
  return warning('log', `${text}: a long export keeps it from shrinking; wait for it, or restart`)
}

function withFile<Value>(path: string, use: (db: DatabaseSync) => Value): Value {
  const db = openDatabase(pathToFileURL(path), { readOnly: true, timeout: openTimeoutMs })
  try {
    return use(db)
  } finally {
    db.close()
  }
}
