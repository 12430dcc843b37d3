import type { Logger } from 'pino'
import { defaultTimeouts } from '../contract/limits.ts'
import { CommandFailed, exitCodes } from './outcome.ts'

/** Two signals so close together are one: a terminal and npm both pass Ctrl-C on. */
const sameSignalMs = 100

/** How long a command that was stopped may take to clean up. */
const lastWordsMs = 1_000

/** Resolves with the first signal to stop. A second one ends the process at once, as does a stop that takes too long. */
export function waitForSignal(logger: Logger): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    onSignal((signal) => {
      logger.info(
        `${signal}: answering what was accepted, then stopping; a second signal stops at once`,
      )
      setTimeout(() => process.exit(1), defaultTimeouts.shutdownMs + 500).unref()
      resolve(signal)
    })
  })
}

/** Aborts with the first signal to stop, so that a command can end in good order. A second one ends the process at once. */
export function stopOnSignal(): AbortSignal {
  const controller = new AbortController()
  onSignal((signal) => controller.abort(signal))
  return controller.signal
}

/** Ends the command in good order where a signal has come, with the exit code that says so. */
export function requireGoingOn(signal: AbortSignal, message: string): void {
  if (!signal.aborted) return
  const exitCode = signal.reason === 'SIGTERM' ? exitCodes.terminated : exitCodes.interrupted
  // A read of a named pipe into which nobody writes cannot be taken back, and keeps the process from ending by itself.
  setTimeout(() => {
    process.removeAllListeners(signal.reason)
    process.kill(process.pid, signal.reason)
  }, lastWordsMs).unref()
  throw new CommandFailed(exitCode, message)
}

function onSignal(receiveFirst: (signal: NodeJS.Signals) => void): void {
  let signalledAt: number | undefined
  function receive(signal: NodeJS.Signals): void {
    if (signalledAt === undefined) {
      signalledAt = performance.now()
      receiveFirst(signal)
    } else if (performance.now() - signalledAt > sameSignalMs) process.exit(1)
  }
  process.on('SIGTERM', receive)
  process.on('SIGINT', receive)
}
