import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  openSync,
  readSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { isOutOfSpace } from './failures.ts'
import { readPragma } from './open-database.ts'

/**
 * Disk space reserved for when the disk is full, as a file beside the database. It is released
 * while a write that must not fail is made; what remains is then taken again. The file is not part
 * of the store: a crash may leave it shorter or missing, and a service recreates it when there is
 * room. Processes that use it at the same time can only waste it.
 */
export interface Reserve {
  /** The space that it holds, in bytes. */
  size(): number
  /** Gives the space back to the disk. Returns how many bytes it held. */
  release(): number
  /** Takes this much space, or as much as there is left. */
  take(bytes: number): void
  /** Brings it to its full size if there is room. */
  restock(): void
}

/** Enough to delete a plant of the largest size, which is also written to the journal. */
const fullSize = 2 * 1024 * 1024
/** On a small disk, at most this share of the free space. */
const maxShare = 1 / 4
/** Less than this is useless: opening the database alone takes 32 KiB. */
const minSize = 64 * 1024

/** Identifies the file, and tells people what it is for. */
const mark = Buffer.from('Plant Store keeps this space for a full disk. Do not delete it.\n')

/** Follows no link and waits for no pipe. Windows lacks these flags. */
const safely = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** The reserve of the database at this path. A database in memory has none. */
export function openReserve(database: string | null): Reserve {
  if (database === null) return { size: () => 0, release: () => 0, take() {}, restock() {} }
  const model = database
  const path = `${database}-reserve`

  function size(): number {
    return withFile(path, constants.O_RDONLY, readReserve) ?? 0
  }

  function release(): number {
    const bytes = size()
    // Removed, not truncated: a process that is writing to it gains nothing then.
    if (bytes > 0) attempt(() => unlinkSync(path))
    return bytes
  }

  function take(bytes: number): void {
    if (bytes === 0) return
    withFile(path, constants.O_RDWR | constants.O_CREAT, (file) => {
      if (readReserve(file) === 0) giveToOwner(file, model)
      grow(file, bytes)
    })
  }

  function restock(): void {
    const held = size()
    const room = attempt(() => findRoom(path)) ?? 0
    const wanted = Math.min(fullSize, Math.floor((room + held) * maxShare))
    if (held < wanted && wanted >= minSize) take(wanted)
  }

  return { size, release, take, restock }
}

/** Runs a function again with the space of the reserve if the disk is full. */
export function withReserve<Value>(database: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (!isOutOfSpace(error)) throw error
    const reserve = openReserve(database)
    const bytes = reserve.release()
    if (bytes === 0) throw error
    try {
      return run()
    } finally {
      reserve.take(bytes)
    }
  }
}

/** How much space is free on the disk of a file. */
function findRoom(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize
}

/**
 * The size of a reserve; undefined for any other file. An empty file, or one that ends within the
 * mark, is a reserve of size 0.
 */
function readReserve(file: number): number | undefined {
  const status = fstatSync(file)
  if (!status.isFile()) return undefined
  const start = Buffer.alloc(Math.min(mark.length, status.size))
  readSync(file, start, 0, start.length, 0)
  if (!start.equals(mark.subarray(0, start.length))) return undefined
  return status.size < mark.length ? 0 : status.size
}

/** A file that root makes gets the owner of another, as SQLite does with its WAL. */
function giveToOwner(file: number, model: string): void {
  if (process.geteuid?.() !== 0) return
  attempt(() => {
    const { uid, gid } = statSync(model)
    fchownSync(file, uid, gid)
  })
}

/** Writes random bytes, which no file system can compress. A full disk ends it early. */
function grow(file: number, bytes: number): void {
  let size = readReserve(file)
  if (size === undefined) return
  if (size === 0) size += writeSync(file, mark, 0, mark.length, 0)
  while (size < bytes) size += writeSync(file, randomBytes(bytes - size), 0, null, size)
}

function withFile<Value>(
  path: string,
  flags: number,
  use: (file: number) => Value,
): Value | undefined {
  return attempt(() => {
    const file = openSync(path, flags | safely, 0o600)
    try {
      return use(file)
    } finally {
      closeSync(file)
    }
  })
}

/** Ignores every error: a store works without a reserve. */
function attempt<Value>(use: () => Value): Value | undefined {
  try {
    return use()
  } catch {
    return undefined
  }
}

/** Releases the reserve for the next commits of a connection. Returns a function that ends this. */
export function spend(db: DatabaseSync, reserve: Reserve): () => void {
  const pages = readPragma(db, 'wal_autocheckpoint')
  // A checkpoint that cannot finish would use up the space.
  db.exec('PRAGMA wal_autocheckpoint = 0')
  const bytes = reserve.release()
  return () => {
    checkpoint(db)
    db.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
    reserve.take(bytes)
  }
}

/** Optional, since the commits have succeeded: without it, the WAL just stays as long as it is. */
function checkpoint(db: DatabaseSync): void {
  try {
    if (fitsIntoDatabase(db)) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  } catch {}
}

/** Whether the database file has room for every page of the WAL that would extend it. */
function fitsIntoDatabase(db: DatabaseSync): boolean {
  const path = db.location()
  if (path === null) return false
  const row = db
    .prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
    .get()
  return Number(row?.bytes) - statSync(path).size < findRoom(path)
}
