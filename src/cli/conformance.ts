import { requireUrl } from '../config.ts'
import {
  promises,
  type Report,
  runConformance,
  TokenRefused,
  type Verdict,
} from '../conformance/run.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { JsonFlags } from './flags.ts'
import { toCount } from './progress.ts'
import { findToken } from './service.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { type Context, type Terminal, toPrintable, warnOfPlainHttp } from './terminal.ts'

interface ConformanceFlags extends JsonFlags {
  readonly token?: string
  readonly tokenFile?: string
  readonly only?: 'spec'
}

/** Judges any server by the promises of this service. Ends with 0 if all hold, with 1 otherwise. */
export async function testConformance(
  url: string,
  flags: ConformanceFlags,
  { env, terminal }: Context<unknown>,
): Promise<void> {
  requireUrl('The address', url)
  const token = findToken(flags, env, 'Set PLANT_STORE_TOKEN, --token or --token-file.')
  warnOfPlainHttp(terminal, 'the token and the plants', url)
  const signal = stopOnSignal()
  const startedAt = performance.now()
  const report = await judge(url, token, flags, signal)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const failed = report.verdicts.filter(({ outcome }) => outcome === 'failed')
  if (signal.aborted) tellRemaining(report, terminal)
  throwIfStopped(signal, 'Stopped: not every promise was judged.')
  if (flags.json) await terminal.print(`${toPrintable(toJson(url, report))}\n`)
  else {
    for (const verdict of report.verdicts) await terminal.print(toLine(verdict))
    const held = report.verdicts.filter(({ outcome }) => outcome === 'holds').length
    const unseen = report.verdicts.length - held - failed.length
    const others = unseen === 0 ? '' : `, ${unseen} not judged`
    const counts = `${toCount(held, 'promises')} hold, ${failed.length} failed${others}`
    await terminal.print(`${counts} (${report.requests} requests, ${seconds} s).\n`)
  }
  tellRemaining(report, terminal)
  if (failed.length > 0) throw new CommandFailed(exitCodes.notOk, '')
}

async function judge(
  url: string,
  token: string,
  { only }: ConformanceFlags,
  signal: AbortSignal,
): Promise<Report> {
  const chosen = promises.filter(({ part }) => only === undefined || part === only)
  try {
    return await runConformance({ url, token, chosen, signal })
  } catch (error) {
    throwIfStopped(signal, 'Stopped: not every promise was judged.')
    if (error instanceof TokenRefused) {
      const message = `The server at ${url} refuses the token (${error.status}). It must be allowed to read and write plants.`
      throw new CommandFailed(exitCodes.noPermission, message)
    }
    const reason = (error as Error).message
    throw new CommandFailed(
      exitCodes.inputOutput,
      `The server at ${url} cannot be asked: ${reason}.`,
    )
  }
}

const words = { holds: 'holds ', failed: 'FAILED', unseen: 'unseen' }

function toLine({ outcome, number, sentence, sent = '', expected, got }: Verdict): string {
  const line = `${words[outcome]}  ${number.padEnd(4)}  ${sentence}`
  if (outcome === 'holds') return `${line}\n`
  if (outcome === 'unseen') return toPrintable(`${line} Not judged: ${got}.`).concat('\n')
  return toPrintable(`${line} Sent: ${sent} Expected: ${expected} Got: ${got}`).concat('\n')
}

function toJson(url: string, { verdicts, requests, remaining }: Report): string {
  const ids = remaining.map(String)
  return JSON.stringify({ url, requests, remaining: ids, promises: verdicts })
}

function tellRemaining({ remaining }: Report, { tell }: Terminal): void {
  if (remaining.length === 0) return
  tell(`The server did not delete these plants of the run: ${remaining.join(', ')}.`)
}
