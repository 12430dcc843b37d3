import { dirname } from 'node:path'
import {
  type Change,
  change,
  type Image,
  newImage,
  pageBytes,
  resize,
  split,
  toPage,
} from './image.ts'
import type { Random } from './random.ts'
import type { Operation } from './trace.ts'

/** What of the operations since the last sync a power cut leaves on the disk. */
export type Cut = 'synced only' | 'any sectors' | 'any pages' | 'torn write'

export const cuts: readonly Cut[] = ['synced only', 'any sectors', 'any pages', 'torn write']

const sectorBytes = 512

interface File {
  readonly cached: Image
  readonly synced: Image
  /** What came after the last sync. */
  changes: Change[]
  /** What a failed sync left in doubt: it may be on the disk or not. */
  doubtful: Change[]
}

/** What is left of a file: what was synced, and what else came to the disk, not yet put together to save a copy. */
export interface Leftover {
  readonly content: Buffer
  readonly changes: readonly Change[]
}

type Names = Map<string, File | 'folder'>

/**
 * A disk whose cache is lost with the power. It is harsher than the journaling file systems that we know: a name is on
 * the disk only when its folder was synced, where ext4, XFS and Btrfs keep it with the first sync of the file, and the
 * names of one folder come to the disk in any order. After a failed sync the pages count as clean, as on Linux: a
 * later sync does not bring them to the disk, unless they are written to once more.
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

  /** The files that a power cut leaves now, by their paths. Good until the next operation. */
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

function newFile(): File {
  return { cached: newImage(), synced: newImage(), changes: [], doubtful: [] }
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

// Whole pages come to the disk, with all that the cache has of them.
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
  // Most are kept in one cut and few in another: with a half always, many sectors never make a whole write.
  const share = random.below(11) / 10
  const pieceBytes = cut === 'any pages' ? pageBytes : sectorBytes
  const pieces = changes.flatMap((whole) => split(whole, pieceBytes))
  return random.shuffle(pieces.filter(() => random.isLikely(share)))
}
