import { parseArgs } from 'node:util'
import { WrongConfig } from '../config.ts'
import { quoteWrong } from '../contract/wrong-value.ts'
import type { Command, CommonValues } from './command.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import { type Flag, type Flags, toLongName } from './flags.ts'
import { gone } from './gone.ts'

/** The arguments of a command, and the values of its flags. */
export interface Arguments {
  readonly args: readonly string[]
  readonly flags: CommonValues
}

/** Reads what follows the name of a command; undefined if it asks for help. */
export function readArguments(
  words: readonly string[],
  path: string,
  { args = {}, flags: table }: Pick<Command, 'args' | 'flags'>,
): Arguments | undefined {
  const byName = new Map(Object.entries(table).map((entry) => [toLongName(entry[1]), entry]))
  const types = [...byName].map(([name, [, flag]]) => [name, { type: toType(flag) }] as const)
  const options = { ...Object.fromEntries(types), help: { type: 'boolean', short: 'h' } } as const
  const { tokens } = parseArgs({ args: [...words], options, strict: false, tokens: true })
  if (tokens.some((token) => token.kind === 'option' && token.name === 'help')) return undefined
  const given: string[] = []
  const texts: Record<string, string | true> = {}
  for (const token of tokens) {
    if (token.kind === 'positional') given.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    const entry = byName.get(name)
    if (entry === undefined) throw unknown('option', rawName, toLongFlags(table), path)
    const [key, flag] = entry
    if (flag.gone !== undefined) throw gone(`${path} ${rawName}`, flag.gone)
    const isMissing = value === undefined || (!inlineValue && value.startsWith('--'))
    if (toType(flag) === 'boolean' ? value !== undefined : isMissing) {
      throw misused(`Option '${flag.form}' ${isMissing ? 'needs a' : 'takes no'} value`, path)
    }
    texts[key] = value ?? true
  }
  requireAll(texts, given, args, table, path)
  return { args: given, flags: readValues(texts, table) }
}

function toType({ form }: Flag<unknown>): 'string' | 'boolean' {
  return form.includes(' ') ? 'string' : 'boolean'
}

function toLongFlags(table: Flags): string[] {
  const shown = Object.values(table).filter((flag) => flag.gone === undefined)
  return shown.map((flag) => `--${toLongName(flag)}`)
}

/** Refuses what is missing, and more arguments than the command has. */
function requireAll(
  texts: Readonly<Record<string, unknown>>,
  given: readonly string[],
  args: Readonly<Record<string, string>>,
  table: Flags,
  path: string,
): void {
  for (const [key, { form, isRequired }] of Object.entries(table)) {
    if (isRequired && !(key in texts)) {
      throw misused(`Required option '${form}' not specified`, path)
    }
  }
  const names = Object.keys(args)
  const missing = names[given.length]
  if (missing?.startsWith('<')) {
    throw misused(`Missing required argument '${missing.slice(1, -1)}'`, path)
  }
  if (given.length <= names.length) return
  throw misused(`Too many arguments: expected ${names.length} but got ${given.length}`, path)
}

/** The values of the flags that were given. Throws every mistake at once. */
function readValues(texts: Readonly<Record<string, string | true>>, table: Flags): CommonValues {
  const mistakes: string[] = []
  const values = Object.entries(texts).map(([key, text]) => {
    const flag = table[key]
    if (flag?.kind === undefined || text === true) return [key, text]
    const value = flag.kind.read(text)
    if (value === undefined) {
      mistakes.push(`--${toLongName(flag)} must ${flag.kind.expected}${quoteWrong(text)}.`)
    }
    return [key, value]
  })
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return Object.fromEntries(values)
}

/** A mistake in the arguments, with where to find help. */
function misused(message: string, path: string): CommandFailed {
  const command = ['plant-store', ...(path === '' ? [] : [path]), '--help'].join(' ')
  return new CommandFailed(exitCodes.usage, `${message}. See: ${command}`)
}

/** A command or an option that does not exist, with the one that may have been meant. */
export function unknown(
  what: 'command' | 'option',
  word: string,
  known: readonly string[],
  path: string,
): CommandFailed {
  // What is no name may be a secret. An option comes here without its value.
  const name = /^[a-z -]{1,19}$/.test(word) ? ` '${word}'` : ''
  const meant = name === '' ? undefined : known.find((one) => isSimilar(word, one))
  const question = meant === undefined ? '' : ` (Did you mean ${meant}?)`
  return misused(`Unknown ${what}${name}${question}`, path)
}

/** Whether a word may be a mistyped one: with up to two letters added, dropped or changed. */
function isSimilar(word: string, meant: string): boolean {
  let row = Array.from({ length: meant.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...word].entries()) {
    const next = [index + 1]
    for (const [at, other] of [...meant].entries()) {
      const [left = 0, diagonal = 0, above = 0] = [next[at], row[at], row[at + 1]]
      next.push(Math.min(left + 1, above + 1, diagonal + (letter === other ? 0 : 1)))
    }
    row = next
  }
  const edits = row.at(-1) ?? 0
  return edits <= 2 && edits < meant.replace(/^--/, '').length / 2 + 0.5
}
