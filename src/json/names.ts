import { randomInt } from 'node:crypto'
import { duplicateMember } from './invalid.ts'
import { decodeAt, readString, skipString, widthAt } from './strings.ts'

/**
 * The names that an object has had so far. No strings are made of them: a body can have 100,000,
 * and a set of strings would cost three times as much.
 */
export interface Names {
  /** Where the first name with each hash is. */
  readonly positions: Map<number, number>
  /** Names whose hash was taken. There is hardly ever one. */
  others: Set<string> | undefined
}

/** Begins with the name at a position. */
export function buildNames(text: string, start: number): Names {
  const positions = new Map([[toHash(text, start, skipString(text, start)), start]])
  return { positions, others: undefined }
}

/** Adds the name at a position. Refuses one that its object has already, however it is written. */
export function addName(names: Names, text: string, start: number, end: number): void {
  const hash = toHash(text, start, end)
  const earlier = names.positions.get(hash)
  if (earlier === undefined) {
    names.positions.set(hash, start)
    return
  }
  const name = readString(text, start, end)
  const earlierName = readString(text, earlier, skipString(text, earlier))
  if (name === earlierName || names.others?.has(name)) throw duplicateMember(text, start, name)
  names.others ??= new Set()
  names.others.add(name)
}

/** Which of these names is at a position, if any. */
export function findName(
  wanted: readonly string[],
  text: string,
  start: number,
  end: number,
): string | undefined {
  return wanted.find((name) => isName(name, text, start, end))
}

function isName(name: string, text: string, start: number, end: number): boolean {
  let at = start + 1
  for (let index = 0; index < name.length; index++) {
    if (decodeAt(text, at) !== name.charCodeAt(index)) return false
    at += widthAt(text, at)
  }
  return at === end - 1
}

// Unknown to clients, so that none can choose names by their hashes.
const seed = randomInt(2 ** 32)

/** FNV-1a over the code units of a name. */
function toHash(text: string, start: number, end: number): number {
  let hash = seed
  for (let at = start + 1; at < end - 1; at += widthAt(text, at)) {
    hash = Math.imul(hash ^ decodeAt(text, at), 0x01000193)
  }
  return hash
}
