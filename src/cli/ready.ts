import { setTimeout as sleep } from 'node:timers/promises'
import { type Environment, readListenConfig, requireUrl, WrongConfig } from '../config.ts'
import { toMs } from '../contract/durations.ts'
import { butNot } from '../contract/wrong-value.ts'
import { toUrl } from '../service.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { Context } from './terminal.ts'

interface ReadyFlags {
  readonly url?: string
  readonly wait?: string
  readonly pid?: string
}

/** How long the service may take to answer, and the pause before it is asked again. */
const answerTimeoutMs = 5_000
const pauseMs = 100

/** Asks a running service whether it is ready, for containers and units. Ends with 0 or 1. */
export async function askReadiness(
  flags: ReadyFlags,
  { env, terminal }: Context<undefined>,
): Promise<void> {
  const url = flags.url === undefined ? toOwnUrl(env) : requireUrl('--url', flags.url)
  const deadline = performance.now() + toWaitMs(flags.wait ?? '0s')
  const pid = toPid(flags.pid)
  for (;;) {
    const problem = await ask(`${url}/readyz`)
    if (problem === undefined) return
    const hasEnded = pid !== undefined && !isRunning(pid)
    if (hasEnded || performance.now() >= deadline) {
      terminal.tell(`${url} is not ready: ${hasEnded ? `process ${pid} has ended` : problem}.`)
      throw new CommandFailed(exitCodes.notOk, '')
    }
    await sleep(pauseMs)
  }
}

/** The address of a service with the same settings. */
function toOwnUrl(env: Environment): string {
  const { host, port } = readListenConfig({}, env)
  return toUrl({ address: host, port })
}

/** Asks without `fetch`, which refuses the ports that browsers refuse, such as 10080. */
function ask(url: string): Promise<string | undefined> {
  const { get } = url.startsWith('https:')
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http')
  const signal = AbortSignal.timeout(answerTimeoutMs)
  const asked = new Promise<string | undefined>((resolve) => {
    const request = get(url, { agent: false, signal }, (answer) => {
      const { statusCode } = answer
      answer.destroy()
      resolve(statusCode === 200 ? undefined : `it answers ${statusCode}`)
    })
    request.on('error', ({ message, code }: NodeJS.ErrnoException) => {
      // If a name has several addresses, the error has no message.
      resolve(signal.aborted ? 'it does not answer' : message || code)
    })
  })
  // HOST may be no part of a URL: an address with a zone, for example.
  return asked.catch(({ message }: Error) => message)
}

function toWaitMs(text: string): number {
  const waitMs = toMs(text)
  if (waitMs === undefined) {
    throw new WrongConfig([`--wait must be a number of s, m, h or d, such as 30s${butNot(text)}.`])
  }
  return waitMs
}

function toPid(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new WrongConfig(['--pid must be the id of a process.'])
  return Number(text)
}

/** A process of another user may not be signalled, but it exists. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
