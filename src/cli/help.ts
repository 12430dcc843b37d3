import type { Command } from './command.ts'
import { commands, groups } from './commands.ts'

/** Terms and what they mean. */
type Rows = readonly (readonly [term: string, about: string])[]

const columns = 80
const helpRow = ['-h, --help', 'show this help'] as const
const versionRow = ['-V, --version', 'show the version'] as const

/** The help of a command, of a group, or of the program; undefined where there is none. */
export function toHelp(name: string): string | undefined {
  const command = commands.get(name)
  if (command !== undefined) return toCommandHelp(name, command)
  const about = groups.get(name)
  if (about === undefined) return undefined
  return [
    toUsage(name, ['<command>']),
    `${about}\n`,
    toSection('Commands', listCommands(name)),
    toSection('Options', name === '' ? [helpRow, versionRow] : [helpRow]),
  ].join('\n')
}

/** The commands of a group with their arguments; of the program, also the groups. */
export function listCommands(group: string): Rows {
  const rows = [...commands].map(([name, { about, args = {} }]) => {
    const [first = '', second] = name.split(' ')
    const [parent, own] = second === undefined ? ['', first] : [first, second]
    return { parent, row: [[own, ...Object.keys(args)].join(' '), about] as const }
  })
  const own = rows.filter(({ parent }) => parent === group).map(({ row }) => row)
  if (group !== '') return own
  const others = [...groups].filter(([name]) => name !== '')
  return [...own, ...others, ['help [command]', 'show the help of a command']]
}

function toCommandHelp(name: string, { about, args = {}, flags, help: more }: Command): string {
  const shown = Object.values(flags).filter((flag) => flag.gone === undefined)
  const options = shown
    .map((flag) => [flag.form, flag.about] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return [
    toUsage(name, ['[options]', ...Object.keys(args)]),
    `${wrap(about, columns).join('\n')}\n`,
    ...(Object.keys(args).length > 0 ? [toSection('Arguments', Object.entries(args))] : []),
    toSection('Options', [...options, helpRow]),
    ...(more === undefined ? [] : [`${more.trim()}\n`]),
  ].join('\n')
}

function toUsage(name: string, rest: readonly string[]): string {
  return `Usage: ${['plant-store', name, ...rest].filter((word) => word !== '').join(' ')}\n`
}

/** A title, and below it terms beside their descriptions. */
function toSection(title: string, rows: Rows): string {
  const width = Math.max(...rows.map(([term]) => term.length))
  const indent = `\n${' '.repeat(width + 4)}`
  const lines = rows.map(
    ([term, about]) =>
      `  ${term.padEnd(width)}  ${wrap(about, columns - width - 4).join(indent)}\n`,
  )
  return `${title}:\n${lines.join('')}`
}

function wrap(text: string, width: number): string[] {
  return text.match(new RegExp(`\\S.{0,${width - 1}}(?=\\s|$)`, 'g')) ?? []
}
