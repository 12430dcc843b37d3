import { setTimeout as sleep } from 'node:timers/promises'
import { type ListenConfig, readListenConfig, requireUrl } from '../config.ts'
import { toUrl } from '../service.ts'
import type { Call, Printed } from './commands.ts'
import { CommandFailed, exitCodes } from './terminal.ts'

/** How long the service may take to answer, and the pause before it is asked again. */
const answerTimeoutMs = 5_000
const pauseMs = 100

/** Asks a running service whether it is ready, for containers and units. Ends with 0 or 1. */
export async function askReadiness({
  flags: { url: given, wait = 0, pid },
  env,
}: Call<'ready'>): Promise<Printed> {
  // Otherwise a service with the same settings.
  const toOwn = ({ host, port }: ListenConfig) => toUrl({ address: host, port })
  const url = given === undefined ? toOwn(readListenConfig({}, env)) : requireUrl('--url', given)
  const deadline = performance.now() + wait
  for (;;) {
    const problem = await ask(`${url}/readyz`)
    if (problem === undefined) return {}
    const hasEnded = pid !== undefined && !isRunning(pid)
    if (hasEnded || performance.now() >= deadline) {
      const reason = hasEnded ? `process ${pid} has ended` : problem
      throw new CommandFailed(exitCodes.notOk, `${url} is not ready: ${reason}.`)
    }
    await sleep(pauseMs)
  }
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

/** A process of another user may not be signalled, but it exists. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
