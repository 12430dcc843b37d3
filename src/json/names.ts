import { randomInt } from 'node:crypto'
import { limits } from '../contract/limits.ts'
import { duplicateMember } from './invalid.ts'
import { findStringEnd, readString } from './strings.ts'

/**
 * A hash table of the names in an object, for one object after the other. No strings are made: a
 * body can have 100,000 names. An entry has two numbers: the hash of a name, and where it is.
 */
export interface Names {
  entries: Int32Array
  /** Where the object begins. Entries of names before it count as free. */
  start: number
  count: number
  /** The names whose hash was taken, with the start of their object. There is hardly ever one. */
  others: Set<string> | undefined
}

const width = 2
const fewEntries = 16
// Shared by all texts, one after the other: making one takes longer than scanning a plant.
const small = Array.from({ length: limits.jsonDepth }, () => new Int32Array(fewEntries * width))

/** Names for an object at this depth. Those in `spare` are for the objects of one text. */
export function takeNames(spare: Names[], depth: number, start: number): Names {
  spare[depth] ??= buildNames(depth)
  const names = spare[depth]
  names.start = start
  names.count = 0
  return names
}

function buildNames(depth: number): Names {
  const entries = (small[depth] as Int32Array).fill(0)
  return { entries, start: 0, count: 0, others: undefined }
}

/** The hash of the empty name. It is secret, so that no client can choose names that collide. */
export const emptyHash = randomInt(2 ** 31)

/** The hash of a name with one more code unit: FNV-1a. */
export function extendHash(hash: number, unit: number): number {
  return Math.imul(hash ^ unit, 0x01000193)
}

/** Adds a name. Refuses one that its object has already, however it is written. */
export function addName(
  names: Names,
  hash: number,
  text: string,
  start: number,
  end: number,
): void {
  const { entries } = names
  const at = findEntry(entries, names.start, hash)
  if (isTaken(entries, at, names.start)) {
    requireNew(names, entries[at + 1] as number, text, start, end)
    return
  }
  entries[at] = hash
  entries[at + 1] = start
  names.count++
  if (2 * names.count * width > entries.length) names.entries = toLarger(entries, names.start)
}

/** Where the entry with this hash is, or a free one. */
function findEntry(entries: Int32Array, objectStart: number, hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x9e3779b1)
  let at = Math.imul(mixed ^ (mixed >>> 15), width)
  for (;;) {
    at &= entries.length - 1
    if (entries[at] === hash || !isTaken(entries, at, objectStart)) return at
    at += width
  }
}

function isTaken(entries: Int32Array, at: number, objectStart: number): boolean {
  return (entries[at + 1] as number) > objectStart
}

function toLarger(entries: Int32Array, objectStart: number): Int32Array {
  const larger = new Int32Array(4 * entries.length)
  for (let at = 0; at < entries.length; at += width) {
    if (!isTaken(entries, at, objectStart)) continue
    const hash = entries[at] as number
    const to = findEntry(larger, objectStart, hash)
    larger[to] = hash
    larger[to + 1] = entries[at + 1] as number
  }
  return larger
}

/** Refuses a name that equals an earlier one with its hash, and remembers any other. */
function requireNew(
  names: Names,
  earlierStart: number,
  text: string,
  start: number,
  end: number,
): void {
  const name = readString(text, start, end)
  const earlier = readString(text, earlierStart, findStringEnd(text, earlierStart))
  const other = `${names.start} ${name}`
  if (name === earlier || names.others?.has(other)) throw duplicateMember(text, start, name)
  names.others ??= new Set()
  names.others.add(other)
}

/** Names to look for. Their hashes tell most others apart without making strings of them. */
export interface Wanted {
  readonly names: readonly string[]
  readonly hashes: readonly number[]
}

export function toWanted(names: readonly string[]): Wanted {
  return { names, hashes: names.map(toHash) }
}

function toHash(name: string): number {
  return name.split('').reduce((hash, unit) => extendHash(hash, unit.charCodeAt(0)), emptyHash)
}

/** The wanted name that is at a position, if there is one. */
export function findWanted(
  { names, hashes }: Wanted,
  hash: number,
  text: string,
  start: number,
  end: number,
): string | undefined {
  return hashes.includes(hash) ? names[names.indexOf(readString(text, start, end))] : undefined
}
