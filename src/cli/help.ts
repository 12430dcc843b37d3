import { toForm } from './arguments.ts'
import { commands, groups } from './commands.ts'

/** Terms and what they mean. */
type Rows = readonly (readonly [term: string, about: string])[]

const columns = 80

/** The help of a command, of a group, or of the program, which has no name. */
export function toHelp(name: string): string {
  const command = commands.get(name)
  const { about, args = {}, flags = {}, help = '' } = command ?? { about: groups.get(name) ?? '' }
  const usage = ['plant-store', name, command ? '[options]' : '<command>', ...Object.keys(args)]
  const options = Object.entries(flags)
    .map(([name, flag]) => [toForm(name, flag), flag.about] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const common = [
    ['-h, --help', 'show this help'],
    ['-V, --version', 'show the version'],
  ] as const
  const parts = [
    `Usage: ${usage.filter((word) => word !== '').join(' ')}\n`,
    `${wrap(about, columns).join('\n')}\n`,
    toSection('Arguments', Object.entries(args)),
    toSection('Commands', command ? [] : listCommands(name)),
    toSection('Options', [...options, ...common.slice(0, name === '' ? 2 : 1)]),
    help && `${help.trim()}\n`,
  ]
  return parts.filter((part) => part !== '').join('\n')
}

/** The commands of a group with their arguments; of the program, also the groups. */
function listCommands(group: string): Rows {
  const rows = [...commands].flatMap(([name, { about, args = {} }]) => {
    const [own = '', parent = ''] = name.split(' ').reverse()
    const term = [own, ...Object.keys(args)].join(' ')
    return parent === group ? [[term, about] as const] : []
  })
  const others = [...groups].filter(([name]) => name !== '')
  const own = ['help [command]', 'show the help of a command'] as const
  return group === '' ? [...rows, ...others, own] : rows
}

/** A title, and below it terms beside their descriptions; empty if there are none. */
function toSection(title: string, rows: Rows): string {
  if (rows.length === 0) return ''
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
