import cluster from 'node:cluster'
import { finished, type Readable } from 'node:stream'
import type { Logger } from 'pino'
import { defaultTimeouts } from '../contract/limits.ts'
import { CommandFailed, exitCodes } from './exit.ts'

/** Two signals this close together count as one: a terminal and npm both pass Ctrl-C on. */
const sameSignalMs = 100

/** The signals that stop a command, SIGHUP when its terminal is closed, and their exit codes. */
const codes = {
  SIGTERM: exitCodes.terminated,
  SIGINT: exitCodes.interrupted,
  SIGHUP: exitCodes.hungUp,
} as const
type StopSignal = keyof typeof codes
const stopSignals = Object.keys(codes) as StopSignal[]

/** The time that a stopped command has to clean up. */
const cleanUpMs = 1_000

/**
 * Resolves with the first signal to stop, or when the input ends, if it is given. A second signal
 * exits at once, and so does a shutdown that takes too long.
 */
export async function waitForStop(
  logger: Logger,
  input?: Readable,
): Promise<StopSignal | 'end of input'> {
  const reason = await new Promise<StopSignal | 'end of input'>((resolve) => {
    onSignal(resolve)
    if (input !== undefined) finished(input.resume(), () => resolve('end of input'))
  })
  logger.info(`${reason}: finishing accepted requests, then stopping; a second signal stops now`)
  setTimeout(() => process.exit(1), defaultTimeouts.shutdownMs + 500).unref()
  // It would keep the process alive.
  input?.destroy()
  return reason
}

/** Aborts with the first signal, so that a command can end cleanly. A second one exits at once. */
export function stopOnSignal(): AbortSignal {
  const controller = new AbortController()
  onSignal((signal) => controller.abort(signal))
  return controller.signal
}

/** Ends a command that was stopped by a signal, with the exit code of that signal. */
export function throwIfStopped(signal: AbortSignal, message: string): void {
  if (signal.aborted) throw toStopped(signal, message)
}

/** The end of a command that was stopped by a signal. */
export function toStopped(signal: AbortSignal, message: string): CommandFailed {
  const exitCode = codes[signal.reason as StopSignal]
  // A named pipe that waits for its other end cannot be cancelled and would keep the process alive.
  setTimeout(() => {
    process.removeAllListeners(signal.reason)
    process.kill(process.pid, signal.reason)
  }, cleanUpMs).unref()
  return new CommandFailed(exitCode, message)
}

function onSignal(receiveFirst: (signal: StopSignal) => void): void {
  let signalledAt: number | undefined
  function receive(signal: NodeJS.Signals): void {
    if (signalledAt === undefined) {
      signalledAt = performance.now()
      receiveFirst(signal as StopSignal)
      return
    }
    // A worker may get the signal of its terminal or of systemd, and then that of the primary
    // process, which ends it by ending itself.
    if (!cluster.isWorker && performance.now() - signalledAt > sameSignalMs) process.exit(1)
  }
  for (const signal of stopSignals) process.on(signal, receive)
}
