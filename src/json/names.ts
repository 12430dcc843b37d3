import { randomInt } from 'node:crypto'
import { backslash, quote, space } from './characters.ts'
import { duplicateMember } from './invalid.ts'
import { brokenString, decodeAt, readString, skipString, widthAt } from './strings.ts'

/**
 * The names that an object has had so far. No strings are made of them: a body can have 100,000,
 * and a set of strings would cost three times as much.
 */
export interface Names {
  /** Where the first name is, and its hash. The second one begins the map. */
  first: number | undefined
  firstHash: number
  /** Where the first name with each hash is. */
  positions: Map<number, number> | undefined
  /** Names whose hash was taken. There is hardly ever one. */
  others: Set<string> | undefined
}

export function buildNames(): Names {
  return { first: undefined, firstHash: 0, positions: undefined, others: undefined }
}

// Unknown to clients, so that none can choose names by their hashes.
const seed = randomInt(2 ** 32)

/** FNV-1a, one code unit at a time. */
function addToHash(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193)
}

/**
 * Skips a name as `skipString` does, and adds it. Refuses one that its object has already, however
 * it is written.
 */
export function addName(names: Names, text: string, start: number): number {
  let hash = seed
  let at = start + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === quote) break
    if (code === backslash) {
      hash = addToHash(hash, decodeAt(text, at))
      at += widthAt(text, at)
    } else if (code >= space) {
      hash = addToHash(hash, code)
      at++
    } else throw brokenString(text, at)
  }
  if (names.first === undefined) {
    names.first = start
    names.firstHash = hash
  } else addFurther(names, text, start, hash)
  return at + 1
}

function addFurther(names: Names, text: string, start: number, hash: number): void {
  names.positions ??= new Map().set(names.firstHash, names.first)
  const earlier = names.positions.get(hash)
  if (earlier === undefined) {
    names.positions.set(hash, start)
    return
  }
  const name = readString(text, start, skipString(text, start))
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
  for (const name of wanted) if (isName(name, text, start, end)) return name
  return undefined
}

function isName(name: string, text: string, start: number, end: number): boolean {
  let at = start + 1
  for (let index = 0; index < name.length; index++) {
    if (decodeAt(text, at) !== name.charCodeAt(index)) return false
    at += widthAt(text, at)
  }
  return at === end - 1
}
