import { dirname } from 'node:path'
import type { Random } from './random.ts'
import type { Operation } from './trace.ts'

/** Which operations since the last sync survive a power cut. */
export type Cut = 'synced only' | 'any sectors' | 'any pages' | 'torn write'

export const cuts: readonly Cut[] = ['synced only', 'any sectors', 'any pages', 'torn write']

const sectorBytes = 512

type File = ReturnType<typeof newFile>

/** The rest of a file: the synced content, and surviving changes to apply to it. */
export interface Leftover {
  readonly content: Buffer
  readonly changes: readonly Change[]
}

type Names = Map<string, File | 'folder'>

/**
 * A disk that loses its cache with the power. It is harsher than ext4, XFS and Btrfs, which persist
 * a name with the first sync of its file: here a name is on the disk only after a sync of its
 * folder, and the names of a folder persist in any order. After a failed sync the pages count as
 * clean, as on Linux: a later sync does not write them unless they change again.
 */
export function buildVolatileDisk(root: string) {
  const names: Names = new Map([[root, 'folder']])
  let syncedNames: Names = new Map(names)

  function apply({ kind, path, offset, data }: Operation): void {
    const found = names.get(path)
    if (kind === 'create') names.set(path, newFile())
    else if (kind === 'make folder') names.set(path, 'folder')
    else if (kind === 'unlink') names.delete(path)
    else if (kind === 'rename') {
      names.delete(path)
      if (found !== undefined) names.set(String(data), found)
    } else if (found === 'folder') {
      if (kind === 'sync') syncFolder(path)
    } else if (found !== undefined) applyToFile(found, kind, { offset, data })
  }

  function syncFolder(folder: string): void {
    const isInside = ([path]: [string, unknown]) => path !== root && dirname(path) === folder
    const outside = [...syncedNames].filter((entry) => !isInside(entry))
    syncedNames = new Map([...outside, ...[...names].filter(isInside)])
  }

  /** The files that a power cut leaves now, by path. Valid until the next operation. */
  function cutPower(cut: Cut, random: Random): Map<string, Leftover> {
    const kept = cut === 'synced only' ? syncedNames : keepSomeNames(random)
    const isReachable = (path: string): boolean =>
      path === root || (kept.has(path) && isReachable(dirname(path)))
    const files = new Map<string, Leftover>()
    for (const [path, file] of kept) {
      if (file !== 'folder' && isReachable(path)) files.set(path, toLeftover(file, cut, random))
    }
    return files
  }

  function keepSomeNames(random: Random): Names {
    const kept = new Map(syncedNames)
    for (const path of new Set([...names.keys(), ...syncedNames.keys()])) {
      const now = names.get(path)
      if (now === syncedNames.get(path) || random.isLikely(0.5)) continue
      if (now === undefined) kept.delete(path)
      else kept.set(path, now)
    }
    return kept
  }

  return { apply, cutPower }
}

function newFile() {
  return {
    cached: newImage(),
    synced: newImage(),
    /** The changes since the last sync. */
    changes: [] as Change[],
    /** The changes before a failed sync, which may be on the disk or not. */
    doubtful: [] as Change[],
  }
}

function applyToFile(
  file: File,
  kind: Operation['kind'],
  { offset, data }: { offset: number; data: Buffer },
): void {
  if (kind === 'write' || kind === 'truncate') {
    const next = { offset, data: kind === 'write' ? data : undefined }
    change(file.cached, next)
    file.changes.push(next)
  } else if (kind === 'sync') sync(file)
  else if (kind === 'failed sync') {
    file.doubtful.push(...file.changes.flatMap((whole) => split(whole, pageBytes)))
    file.changes = []
  }
}

// A sync writes whole pages from the cache.
function sync(file: File): void {
  const { cached, synced, changes } = file
  resize(synced, cached.length)
  const writes = changes.filter(({ data }) => data !== undefined)
  const pages = new Set(writes.flatMap((whole) => split(whole, pageBytes)).map(toPage))
  for (const page of pages) {
    cached.bytes.copy(
      synced.bytes,
      page * pageBytes,
      page * pageBytes,
      Math.min(cached.length, (page + 1) * pageBytes),
    )
  }
  file.doubtful = file.doubtful.filter((piece) => piece.data && !pages.has(toPage(piece)))
  file.changes = []
}

function toLeftover({ synced, changes, doubtful }: File, cut: Cut, random: Random): Leftover {
  const content = synced.bytes.subarray(0, synced.length)
  if (cut === 'synced only') return { content, changes: [] }
  const someDoubtful = doubtful.filter(() => random.isLikely(0.5))
  return { content, changes: [...someDoubtful, ...keepSome(changes, cut, random)] }
}

function keepSome(changes: readonly Change[], cut: Cut, random: Random): Change[] {
  if (cut === 'torn write') {
    const whole = changes.slice(0, random.below(changes.length + 1))
    const torn = changes[whole.length]
    if (torn === undefined) return whole
    const sectors = split(torn, sectorBytes)
    return [...whole, ...sectors.slice(0, random.below(sectors.length + 1))]
  }
  // The share varies: with a constant one half, a write of many sectors would never survive.
  const share = random.below(11) / 10
  const pieceBytes = cut === 'any pages' ? pageBytes : sectorBytes
  const pieces = changes.flatMap((whole) => split(whole, pieceBytes))
  return random.shuffle(pieces.filter(() => random.isLikely(share)))
}

/** The bytes of a file, in a buffer that may be larger. */
type Image = ReturnType<typeof newImage>

/** A write, or a truncate without data. */
export interface Change {
  readonly offset: number
  readonly data: Buffer | undefined
}

const pageBytes = 4096

function newImage() {
  return { bytes: Buffer.alloc(0) as Buffer, length: 0 }
}

function change(image: Image, { offset, data }: Change): void {
  if (data === undefined) {
    resize(image, offset)
    return
  }
  if (offset + data.length > image.length) resize(image, offset + data.length)
  data.copy(image.bytes, offset)
}

/** Resizes an image. New bytes are zeros. */
function resize(image: Image, length: number): void {
  if (length < image.length) image.bytes.fill(0, length, image.length)
  if (length > image.bytes.length) {
    image.bytes = Buffer.concat([image.bytes, Buffer.alloc(2 * length - image.bytes.length)])
  }
  image.length = length
}

/** Splits a write at the borders of the pieces of the file, such as sectors. */
function split(whole: Change, pieceBytes: number): Change[] {
  const { offset, data } = whole
  if (data === undefined) return [whole]
  const pieces: Change[] = []
  for (let start = 0; start < data.length; ) {
    const end = Math.min(data.length, start + pieceBytes - ((offset + start) % pieceBytes))
    pieces.push({ offset: offset + start, data: data.subarray(start, end) })
    start = end
  }
  return pieces
}

function toPage({ offset }: Change): number {
  return Math.floor(offset / pageBytes)
}
