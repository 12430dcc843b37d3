import { parseArgs } from 'node:util'
import { WrongConfig } from '../config.ts'
import { quoteWrong } from '../contract/setting-values.ts'
import { type Command, gone } from './commands.ts'
import type { Flag } from './flags.ts'
import { CommandFailed, exitCodes } from './terminal.ts'

/** The values of flags that are the same for all commands, and any others. */
export type CommonValues = { readonly [name in 'json' | 'quiet' | 'create']?: boolean } & {
  readonly database?: string
}

/** Reads what follows the name of a command; undefined if it asks for help. */
export function readArguments(
  words: readonly string[],
  path: string,
  { args = {}, flags: table }: Pick<Command, 'args' | 'flags'>,
): { readonly args: readonly string[]; readonly flags: CommonValues } | undefined {
  const types = Object.entries(table).map(
    ([name, { kind }]) => [name, { type: kind === undefined ? 'boolean' : 'string' }] as const,
  )
  const options = { ...Object.fromEntries(types), help: { type: 'boolean', short: 'h' } } as const
  // Not strict: the messages of `parseArgs` repeat arguments, which may be secrets.
  const parsed = parseArgs({ args: [...words], options, strict: false, tokens: true })
  if ('help' in parsed.values) return undefined
  const flags: Record<string, unknown> = {}
  const mistakes: string[] = []
  for (const token of parsed.tokens) {
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    if (!Object.hasOwn(table, name)) throw unknownWord('option', rawName, path)
    const kind = table[name]?.kind
    const hasValue = value !== undefined && (inlineValue || !value.startsWith('--'))
    if (kind && !hasValue) throw misused(`Option '${rawName}' needs a value`, path)
    if (!kind && hasValue) throw misused(`Option '${rawName}' takes no value`, path)
    flags[name] = kind === undefined ? true : kind.read(String(value))
    if (kind && flags[name] === undefined) {
      mistakes.push(`--${name} must ${kind.expected}${quoteWrong(String(value))}.`)
    }
  }
  for (const [name, flag] of Object.entries(table)) {
    if (!flag.isRequired || name in flags) continue
    throw misused(`Required option '${toForm(name, flag)}' not specified`, path)
  }
  const [names, given] = [Object.keys(args), parsed.positionals.length]
  const missing = names[given]
  if (missing?.startsWith('<')) {
    throw misused(`Missing required argument '${missing.slice(1, -1)}'`, path)
  }
  if (given > names.length) {
    throw misused(`Too many arguments: expected ${names.length} but got ${given}`, path)
  }
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return { args: parsed.positionals, flags }
}

/** A flag as the help shows it, such as `--name <name>`. */
export function toForm(name: string, { kind }: Flag<unknown>): string {
  return kind === undefined ? `--${name}` : `--${name} ${kind.form}`
}

/** A mistake in the arguments, with where to find help. */
function misused(message: string, path: string): CommandFailed {
  const command = ['plant-store', ...(path === '' ? [] : [path]), '--help'].join(' ')
  return new CommandFailed(exitCodes.usage, `${message}. See: ${command}`)
}

/** A command or an option that does not exist, or only in releases before 2.0.0. */
export function unknownWord(what: 'command' | 'option', word: string, path: string): CommandFailed {
  const name = path === '' ? word : `${path} ${word}`
  if (Object.hasOwn(gone, name)) {
    return new CommandFailed(exitCodes.usage, `${name} is gone since 2.0.0. ${gone[name]}`)
  }
  // A word that does not look like a name may be a secret. An option comes here without its value.
  const shown = /^[a-z -]{1,19}$/.test(word) ? ` '${word}'` : ''
  return misused(`Unknown ${what}${shown}`, path)
}
