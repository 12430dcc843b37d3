import { Writable } from 'node:stream'
import { type Logger, pino } from 'pino'
import { toPrintable } from '../printable.ts'
import type { ErrorStream } from '../terminal.ts'

/** How much of the log is held in memory while it cannot be written. */
const maxBacklogBytes = 1024 * 1024

/** Opens the log: readable lines on a terminal, JSON elsewhere. Neither has control characters. */
export async function openLogger(level: string, output: ErrorStream): Promise<Logger> {
  if (!output.isTTY) {
    const hooks = { streamWrite: toPrintableLines }
    const file = pino.destination({ dest: output.fd ?? 2, sync: true, maxLength: maxBacklogBytes })
    // A full disk is no reason to stop: lines are lost until it has room again.
    file.on('error', () => {})
    return pino({ level, hooks }, file)
  }
  const { default: pretty } = await import('pino-pretty')
  const stream = pretty({
    ignore: 'pid,hostname',
    translateTime: 'HH:MM:ss',
    singleLine: true,
    messageFormat: (entry, key) => toPrintable(String(entry[key] ?? '')),
    destination: toPrintableStream(output),
    sync: true,
  })
  return pino({ level }, stream)
}

/** Colours, the only sequences that pino-pretty itself writes. */
const color = new RegExp(`(${String.fromCharCode(0x1b)}\\[\\d{1,3}m)`)

function toPrintableStream(output: Writable): Writable {
  return new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      const parts = text.split(color)
      const shown = parts.map((part, index) => (index % 2 === 1 ? part : toPrintableLines(part)))
      output.write(shown.join(''), done)
    },
  })
}

function toPrintableLines(text: string): string {
  return text.split('\n').map(toPrintable).join('\n')
}
