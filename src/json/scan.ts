import { limits } from '../contract/limits.ts'
import {
  type Action,
  expectations,
  findStep,
  isState,
  step,
  toHandlers,
  toState,
} from './grammar.ts'
import { expected, invalidJson } from './invalid.ts'
import {
  addName,
  emptyHash,
  extendHash,
  findWanted,
  type Names,
  takeNames,
  type Wanted,
} from './names.ts'
import { decodeEscape, widthOfEscape } from './strings.ts'
import { toUnits, type Units } from './units.ts'

/** Where the value of a member of the outermost object is. */
export interface Span {
  readonly name: string
  start: number
  end: number
}

/** A text that is being scanned. */
interface Scan {
  readonly text: string
  readonly units: Units
  at: number
  state: number
  /** The open containers from the outside in: names for an object, undefined for an array. */
  readonly open: (Names | undefined)[]
  /** The names of the last object at each depth, for the next one to use again. */
  readonly spare: Names[]
  /** The latest name: where it begins, and the hash of its characters. */
  nameStart: number
  hash: number
  readonly wanted: Wanted
  readonly spans: Span[]
  /** The span whose value is being scanned. */
  span: Span | undefined
}

const { value, firstItem, afterItem, firstMember, name, afterName, afterMember, beforeEnd } = step

/**
 * Checks the syntax of a text, its depth and that names are unique, and finds the wanted members
 * of the outermost object. No value is built, so that hostile JSON costs no more than its length.
 */
export function scan(text: string, wanted: Wanted): readonly Span[] {
  const scan: Scan = {
    text,
    units: toUnits(text),
    at: 0,
    state: value,
    open: [],
    spare: [],
    nameStart: 0,
    hash: emptyHash,
    wanted,
    spans: [],
    span: undefined,
  }
  const { units } = scan
  let { state, hash } = scan
  for (let at = 0; at <= text.length; at++) {
    const unit = units[at] as number
    const next = findStep(state, unit)
    if (isState(next)) {
      state = next
      hash = extendHash(hash, unit)
    } else {
      scan.at = at
      scan.state = state
      scan.hash = hash
      state = (handlers[next] as Handler)(scan)
      at = scan.at
      hash = scan.hash
    }
  }
  return scan.spans
}

/** Does what an action asks for, and returns the next state. */
type Handler = (scan: Scan) => number

const actions: Readonly<Record<Action, Handler>> = {
  openObject(scan) {
    requireDepth(scan)
    scan.open.push(takeNames(scan.spare, scan.open.length, scan.at))
    return firstMember
  },

  openArray(scan) {
    requireDepth(scan)
    scan.open.push(undefined)
    return firstItem
  },

  close(scan) {
    scan.open.pop()
    return endValue(scan, scan.at + 1)
  },

  openName(scan) {
    scan.nameStart = scan.at
    scan.hash = emptyHash
    return name
  },

  endName(scan) {
    const { text, nameStart, hash, open, wanted } = scan
    const end = scan.at + 1
    addName(open[open.length - 1] as Names, hash, text, nameStart, end)
    const found = open.length === 1 ? findWanted(wanted, hash, text, nameStart, end) : undefined
    if (found !== undefined) {
      scan.span = { name: found, start: end, end }
      scan.spans.push(scan.span)
    }
    return afterName
  },

  escape(scan) {
    const { text, units, at, hash, state } = scan
    scan.hash = extendHash(hash, decodeEscape(text, units, at))
    scan.at += widthOfEscape(units, at) - 1
    return state
  },

  endValue: (scan) => endValue(scan, scan.at + 1),

  /** A number ends before a character that is not its own, which comes again in the next state. */
  endNumber: (scan) => endValue(scan, scan.at--),

  /** The zero after the last code unit, or one that is in the text. */
  endText: (scan) => (scan.at === scan.text.length ? beforeEnd : fail(scan)),

  fail,
}

// V8 does not inline functions that it finds in a list, so each is compiled by itself, in a
// millisecond or two. Inlined into one, they took 40 for the first large body of a process.
const handlers = toHandlers(actions)

/** Refuses a container that opens too deep. */
function requireDepth({ open, text, at }: Scan): void {
  if (open.length < limits.jsonDepth) return
  throw invalidJson(text, at, `nesting deeper than ${limits.jsonDepth} levels`)
}

function endValue(scan: Scan, end: number): number {
  const { units, open, span } = scan
  if (open.length === 0) return beforeEnd
  if (span !== undefined && open.length === 1) {
    while (isBeforeValue(units[span.start] as number)) span.start++
    span.end = end
    scan.span = undefined
  }
  return open[open.length - 1] === undefined ? afterItem : afterMember
}

/** Whether this is white space or a colon. */
function isBeforeValue(unit: number): boolean {
  return unit <= 0x20 || unit === 0x3a
}

function fail({ text, at, state }: Scan): never {
  const found = toState(state)
  if ((found === 'string' || found === 'name') && at < text.length) {
    throw invalidJson(text, at, 'unescaped control character in a string')
  }
  const isInWord = ['true', 'false', 'null'].some((word) => word.startsWith(found))
  throw expected(text, isInWord ? at - found.length : at, expectations[found])
}
