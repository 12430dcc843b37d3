import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import { toPrintable } from '../printable.ts'
import type { ErrorStream } from '../terminal.ts'

/** How much of the log is held in memory while it cannot be written. */
const maxBacklogBytes = 1024 * 1024

/** Opens the log: readable lines on a terminal, JSON elsewhere. Neither has control characters. */
export function openLogger(level: string, output: ErrorStream): Logger {
  if (output.isTTY) {
    return pino({ level }, { write: (line) => output.write(toReadable(JSON.parse(line), output)) })
  }
  const hooks = { streamWrite: toPrintableLines }
  const file = pino.destination({ dest: output.fd ?? 2, sync: true, maxLength: maxBacklogBytes })
  // A full disk is no reason to stop: lines are lost until it has room again.
  file.on('error', () => {})
  return pino({ level, hooks }, file)
}

type Style = Parameters<typeof styleText>[0]

const levelStyles: Readonly<Record<string, Style>> = {
  fatal: 'bgRed',
  error: 'red',
  warn: 'yellow',
  info: 'green',
  debug: 'blue',
  trace: 'gray',
}

/** An entry as one line, and the stack of its error below. */
function toReadable(entry: Record<string, unknown>, output: ErrorStream): string {
  const { level, time, pid, hostname, msg, err, ...members } = entry
  const { type, message, stack, ...details } = Object(err) as Record<string, unknown>
  if (stack === undefined && err !== undefined) members.err = err
  else if (Object.keys(details).length > 0) members.err = details
  const paint = (style: Style, text: string) =>
    styleText(style, toPrintable(text), { stream: output })
  const label = pino.levels.labels[Number(level)] ?? 'info'
  const parts = [
    `[${new Date().toISOString().slice(11, 19)}]`,
    `${paint(levelStyles[label] ?? 'green', label.toUpperCase())}:`,
    ...(msg === undefined ? [] : [paint('cyan', String(msg))]),
    ...(Object.keys(members).length === 0 ? [] : [paint('gray', JSON.stringify(members))]),
  ]
  const trace = stack === undefined ? [] : String(stack).split('\n')
  return [parts.join(' '), ...trace.map((line) => `    ${toPrintable(line)}`), ''].join('\n')
}

function toPrintableLines(text: string): string {
  return text.split('\n').map(toPrintable).join('\n')
}
