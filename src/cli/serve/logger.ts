import { type Logger, pino } from 'pino'
import type { ErrorStream } from '../terminal.ts'

/** Opens the log: readable lines on a terminal, JSON elsewhere. */
export async function openLogger(level: string, output: ErrorStream): Promise<Logger> {
  if (!output.isTTY) return pino({ level }, pino.destination({ dest: output.fd ?? 2, sync: true }))
  const { default: pretty } = await import('pino-pretty')
  const stream = pretty({
    ignore: 'pid,hostname',
    translateTime: 'HH:MM:ss',
    destination: output,
    sync: true,
  })
  return pino({ level }, stream)
}
