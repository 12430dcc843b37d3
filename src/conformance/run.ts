import { access } from './access.ts'
import { bodies } from './bodies.ts'
import { events } from './events.ts'
import { Broken, Unseen } from './expect.ts'
import { files } from './files.ts'
import { lists } from './lists.ts'
import type { Promised } from './promised.ts'
import { protocol } from './protocol.ts'
import { json, openRun, type RunTimeouts, type Server } from './server.ts'
import { specification } from './spec.ts'
import { writes } from './writes.ts'

/** Every promise, in the order in which they are judged. */
export const promises: readonly Promised[] = [
  ...specification,
  ...bodies,
  ...writes,
  ...lists,
  ...access,
  ...protocol,
  ...files,
  ...events,
]

/** What became of a promise: `unseen` if the server has switched off what it is about. */
export interface Verdict extends Omit<Promised, 'run'> {
  readonly outcome: 'holds' | 'failed' | 'unseen'
  readonly sent?: string
  readonly expected?: string
  readonly got?: string
}

export interface Report {
  readonly verdicts: readonly Verdict[]
  readonly requests: number
  /** The ids of plants that were stored and could not be deleted. */
  readonly remaining: readonly bigint[]
}

export interface ConformanceOptions {
  readonly url: string
  readonly token: string
  /** Every one unless given. */
  readonly chosen?: readonly Promised[] | undefined
  readonly timeouts?: ConformanceTimeouts
  /** Ends the run early. What it has stored is still deleted. */
  readonly signal: AbortSignal
}

/** The server refuses the token, so nothing can be judged. */
export class TokenRefused extends Error {
  readonly status: number

  constructor(status: number) {
    super(`the server answered ${status}`)
    this.status = status
  }
}

/** Together less than a minute. */
export interface ConformanceTimeouts extends RunTimeouts {
  readonly runMs: number
}

const defaultTimeouts: ConformanceTimeouts = {
  runMs: 35_000,
  answerMs: 10_000,
  cleanUpMs: 20_000,
}
/** How many promises are judged at a time: a distant server would take too long otherwise. */
const atOnce = 8
const maxShown = 500

/** Judges a server by what it answers. Throws what `connect` throws if there is none. */
export async function runConformance(options: ConformanceOptions): Promise<Report> {
  const { token, chosen = promises, timeouts = defaultTimeouts } = options
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeouts.runMs)])
  const run = openRun({ base: new URL(options.url), token, signal, timeouts })
  const verdicts: Verdict[] = []
  let remaining: readonly bigint[] = []
  try {
    await tryToken(run.server, chosen)
    const waiting = chosen.entries()
    async function work(): Promise<void> {
      for (const [index, promised] of waiting) verdicts[index] = await judge(promised, run.server)
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  } finally {
    remaining = await run.cleanUp()
  }
  return { verdicts, requests: run.requests(), remaining }
}

/** Sends requests that a server with this token has to look into. */
async function tryToken(server: Server, chosen: readonly Promised[]): Promise<void> {
  const post = { method: 'POST', path: '/plants', headers: json, body: '{}' }
  const calls = [post, { path: '/plants' }]
  const isWhole = chosen.some(({ part }) => part === 'contract')
  for (const call of isWhole ? calls : calls.slice(0, 1)) {
    const { status } = await server.ask(call)
    if (status === 401 || status === 403) throw new TokenRefused(status)
  }
}

async function judge(promised: Promised, server: Server): Promise<Verdict> {
  const { run, ...named } = promised
  const show = (text: string) => text.replaceAll(server.token, '<token>').slice(0, maxShown)
  try {
    await run(server)
    return { ...named, outcome: 'holds' }
  } catch (error) {
    if (error instanceof Unseen) return { ...named, outcome: 'unseen', got: error.message }
    // A lost connection, the end of the time, or an answer that no code foresaw.
    const { sent, expected, got } =
      error instanceof Broken ? error : new Broken('', 'an answer', String(error))
    const shown = { sent: show(sent), expected: show(expected), got: show(got) }
    return { ...named, outcome: 'failed', ...shown }
  }
}
