import cluster from 'node:cluster'
import { finished, type Readable } from 'node:stream'
import type { Logger } from 'pino'
import { defaultTimeouts } from '../contract/limits.ts'
import { exitCodes, type Terminal } from './terminal.ts'

/** Signals this close together count as one: Ctrl-C comes from the terminal and from npm. */
const sameSignalMs = 100

/** The signals that stop a command, with its exit codes. Closing a terminal sends SIGHUP. */
const codes = {
  SIGTERM: exitCodes.terminated,
  SIGINT: exitCodes.interrupted,
  SIGHUP: exitCodes.hungUp,
} as const
export type StopSignal = keyof typeof codes
const stopSignals = Object.keys(codes) as StopSignal[]

/** Ends the process at the first signal, unless a command takes signals itself. */
export function endOnSignal({ tell, showBar }: Pick<Terminal, 'tell' | 'showBar'>): void {
  for (const signal of stopSignals) {
    process.on(signal, () => {
      if (process.listenerCount(signal) > 1) return
      showBar('')
      tell('Stopped.')
      endBy(signal)
    })
  }
}

/**
 * Ends the process by a signal that it has caught, after the other listeners for `exit`, which
 * remove drafts. A shell then ends its loop as well, and systemd counts a success.
 */
export function endBy(signal: StopSignal): never {
  process.removeAllListeners(signal)
  process.on('exit', () => {
    // Otherwise Node.js would wait for its threads, and one may be opening a named pipe that never
    // gets its other end.
    if (process.platform !== 'win32') process.kill(process.pid, signal)
  })
  process.exit(codes[signal])
}

/**
 * Resolves with the first signal to stop, or with the end of the input, if one is given. A second
 * signal ends the process at once, and so does a shutdown that takes too long.
 */
export async function waitForStop(
  logger: Logger,
  input?: Readable,
): Promise<StopSignal | 'end of input'> {
  const signal = stopOnSignal()
  const reason = await new Promise<StopSignal | 'end of input'>((resolve) => {
    signal.addEventListener('abort', () => resolve(signal.reason))
    if (input !== undefined) finished(input.resume(), () => resolve('end of input'))
  })
  logger.info(`${reason}: finishing accepted requests, then stopping; a second signal stops now`)
  setTimeout(() => process.exit(1), defaultTimeouts.shutdownMs + 500).unref()
  return reason
}

/** Aborts with the first signal, so that a command can finish what it does. */
export function stopOnSignal(): AbortSignal {
  const controller = new AbortController()
  let signalledAt = Infinity
  function receive(signal: StopSignal): void {
    // A worker ignores a second signal: the terminal or systemd may have sent the first one, and
    // the primary process the second. When the primary process ends, its workers end as well.
    if (!cluster.isWorker && performance.now() - signalledAt > sameSignalMs) process.exit(1)
    if (!controller.signal.aborted) signalledAt = performance.now()
    controller.abort(signal)
  }
  for (const signal of stopSignals) process.on(signal, receive)
  return controller.signal
}
