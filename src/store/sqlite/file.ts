import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { makeFolder } from '../../paths.ts'
import { UnusableStore } from '../store.ts'

/** Marks a file as ours in its header: "plst". */
export const applicationId = 0x706c7374
/** The first bytes of a rollback journal. */
const journalMark = Buffer.from('d9d505f920a163d7', 'hex')

/** Creates the file and its folders if they are missing. Refuses a file that is not ours. */
export function prepareFile(path: string): void {
  requireShort(path)
  makeFolder(dirname(path))
  // SQLite would make it readable for every user. The WAL inherits the mode.
  withFile(path, openFlags, (file) => {
    identify(file, path)
    closeToOthers(file, path)
    removeReserve(`${path}-reserve`)
  })
}

/** Whether the file is missing or empty. A file that cannot be inspected is not new. */
export function isNewFile(path: string): boolean {
  try {
    const status = statSync(path, { throwIfNoEntry: false })
    return status === undefined || (status.isFile() && status.size === 0)
  } catch {
    return false
  }
}

/** The size of a file; 0 if it is missing or cannot be inspected. */
export function readSize(path: string): number {
  try {
    return statSync(path).size
  } catch {
    return 0
  }
}

/** The beginning of the file by which releases before 2.0.0 reserved 2 MiB for a full disk. */
const reserveMark = Buffer.from('Plant Store keeps this space for a full disk.')

/** Frees that space. */
function removeReserve(path: string): void {
  try {
    if (lstatSync(path).isFile() && beginsWith(path, reserveMark)) rmSync(path)
  } catch {
    // There is none, or it cannot be removed: the store works either way.
  }
}

function beginsWith(path: string, mark: Buffer): boolean {
  const start = Buffer.alloc(mark.length)
  withFile(path, constants.O_RDONLY | nonBlocking, (file) => readSync(file, start))
  return start.equals(mark)
}

/** Opening a named pipe could hang. Windows has none, and lacks this flag. */
const nonBlocking = constants.O_NONBLOCK ?? 0
const openFlags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | nonBlocking

/**
 * The files beside the database add up to 27 bytes to its name. SQLite allows 512 for a path, and
 * most file systems 255 for a name.
 */
function requireShort(path: string): void {
  if (Buffer.byteLength(basename(path)) <= 228 && Buffer.byteLength(resolve(path)) <= 485) return
  throw new UnusableStore(
    `Cannot open the database ${path}: check the length of the path (485 bytes at most, 228 of them in the name of the file).`,
  )
}

function withFile<Value>(path: string, flags: number, use: (file: number) => Value): Value {
  const file = openSync(path, flags, 0o600)
  try {
    if (fstatSync(file).isFile()) return use(file)
    throw new UnusableStore(`Cannot open the database ${path}: it is not a regular file.`)
  } finally {
    closeSync(file)
  }
}

/** Restricts the file and its WAL to the owner, as for a file that we create. */
function closeToOthers(file: number, path: string): void {
  const { mode, uid } = fstatSync(file)
  if ((mode & 0o077) === 0 || uid !== process.geteuid?.()) return
  fchmodSync(file, mode & 0o700)
  for (const log of [`${path}-wal`, `${path}-shm`]) if (existsSync(log)) chmodSync(log, 0o600)
}

/** Tells whether a file is new or ours, without changing it. Throws for any other file. */
export function identifyFile(path: string): 'new' | 'ours' {
  return withFile(path, constants.O_RDONLY | nonBlocking, (file) => identify(file, path))
}

// Reads the header directly, because SQLite might change a file that is not ours.
function identify(file: number, path: string): 'new' | 'ours' {
  const header = Buffer.alloc(72)
  const bytes = readSync(file, header, 0, header.length, 0)
  if (bytes === 0 || isUnfinished(header, path)) return 'new'
  const isSqlite = header.toString('latin1', 0, 16) === 'SQLite format 3\0'
  if (!isSqlite || header.readUInt32BE(68) !== applicationId) throw foreignFile(path)
  return 'ours'
}

// A power cut during the first start can leave a file of zeros and a hot rollback journal.
function isUnfinished(header: Buffer, path: string): boolean {
  const journal = `${path}-journal`
  const isBlank = header.every((byte) => byte === 0)
  return isBlank && existsSync(journal) && beginsWith(journal, journalMark)
}

export function foreignFile(path: string): UnusableStore {
  return new UnusableStore(
    `${path} is not a database of Plant Store and was not touched. Name another path.`,
  )
}
