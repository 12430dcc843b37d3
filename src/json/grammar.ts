/** The states of the scanner, and what each expects. The states of a word are its prefixes. */
export const expectations = {
  value: 'a value',
  firstItem: 'a value',
  afterItem: '"," or "]"',
  firstMember: 'a member name in double quotes or "}"',
  nextMember: 'a member name in double quotes',
  afterName: '":"',
  afterMember: '"," or "}"',
  beforeEnd: 'the end of the text',
  name: 'the closing quote of a string',
  string: 'the closing quote of a string',
  t: 'a value',
  tr: 'a value',
  tru: 'a value',
  f: 'a value',
  fa: 'a value',
  fal: 'a value',
  fals: 'a value',
  n: 'a value',
  nu: 'a value',
  nul: 'a value',
  minus: 'a digit',
  zero: 'a digit',
  integer: 'a digit',
  point: 'a digit',
  decimals: 'a digit',
  exponent: 'a digit',
  sign: 'a digit',
  power: 'a digit',
}

/** The actions of the scanner, for characters that do more than change the state. */
const actions = [
  'openObject',
  'openArray',
  'close',
  'openName',
  'endName',
  'escape',
  'endValue',
  'endNumber',
  'endText',
  'fail',
] as const

export type State = keyof typeof expectations
export type Action = (typeof actions)[number]
type Step = State | Action

/** The step for the characters of each key; for all others `rest` or, without it, `fail`. */
type Row = Readonly<Record<string, Step>>

const space = ' \t\r\n'
const control = String.fromCharCode(...Array(32).keys())
const digit = '0123456789'
const aValue: Row = {
  '{': 'openObject',
  '[': 'openArray',
  '"': 'string',
  '-': 'minus',
  '0': 'zero',
  '123456789': 'integer',
  t: 't',
  f: 'f',
  n: 'n',
}

const grammar: Readonly<Record<State, Row>> = {
  value: { [space]: 'value', ...aValue },
  firstItem: { [space]: 'firstItem', ...aValue, ']': 'close' },
  afterItem: { [space]: 'afterItem', ',': 'value', ']': 'close' },
  firstMember: { [space]: 'firstMember', '"': 'openName', '}': 'close' },
  nextMember: { [space]: 'nextMember', '"': 'openName' },
  afterName: { [space]: 'afterName', ':': 'value' },
  afterMember: { [space]: 'afterMember', ',': 'nextMember', '}': 'close' },
  beforeEnd: { [space]: 'beforeEnd', '\0': 'endText' },

  name: { '"': 'endName', '\\': 'escape', [control]: 'fail', rest: 'name' },
  string: { '"': 'endValue', '\\': 'escape', [control]: 'fail', rest: 'string' },

  t: { r: 'tr' },
  tr: { u: 'tru' },
  tru: { e: 'endValue' },
  f: { a: 'fa' },
  fa: { l: 'fal' },
  fal: { s: 'fals' },
  fals: { e: 'endValue' },
  n: { u: 'nu' },
  nu: { l: 'nul' },
  nul: { l: 'endValue' },

  minus: { '0': 'zero', '123456789': 'integer' },
  zero: { '.': 'point', eE: 'exponent', rest: 'endNumber' },
  integer: { [digit]: 'integer', '.': 'point', eE: 'exponent', rest: 'endNumber' },
  point: { [digit]: 'decimals' },
  decimals: { [digit]: 'decimals', eE: 'exponent', rest: 'endNumber' },
  exponent: { [digit]: 'power', '+-': 'sign' },
  sign: { [digit]: 'power' },
  power: { [digit]: 'power', rest: 'endNumber' },
}

const states = Object.keys(expectations) as State[]
const steps: readonly Step[] = [...states, ...actions]

/** The number of each state and action. Those of the states come first. */
export const step = Object.fromEntries(steps.map((name, number) => [name, number])) as Readonly<
  Record<Step, number>
>

/** One for each character of ASCII. JSON never names the last one: it stands for all others. */
const columns = 128

const table = Uint8Array.from(states.flatMap((state) => toNumbers(grammar[state])))

function toNumbers({ rest = 'fail', ...row }: Row): number[] {
  const numbers: number[] = Array(columns).fill(step[rest])
  for (const [characters, next] of Object.entries(row)) {
    for (const code of Buffer.from(characters)) numbers[code] = step[next]
  }
  return numbers
}

/** The number of the step for a code unit in a state. */
export function findStep(state: number, unit: number): number {
  return table[state * columns + (unit < columns ? unit : columns - 1)] as number
}

/** Whether a step is a state, and not an action. */
export function isState(number: number): boolean {
  return number < states.length
}

/** The name of a state. */
export function toState(number: number): State {
  return states[number] as State
}

/** The handlers of all actions, by the numbers of the actions. */
export function toHandlers<Handler>(handlers: Readonly<Record<Action, Handler>>): Handler[] {
  const list: Handler[] = []
  for (const action of actions) list[step[action]] = handlers[action]
  return list
}
