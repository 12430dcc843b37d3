import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

/** The operator's token of every service here. */
export const token = 'a-token-for-the-fault-tests'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

export interface ProcessOptions {
  /** As DATABASE_URL names it. */
  readonly database: string
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  /** How many files and connections it may have open. */
  readonly descriptors?: number
  /** Another program than the real service, for the controls. */
  readonly command?: readonly string[]
}

export interface ServiceProcess {
  readonly child: ChildProcess
  readonly url: string
  /** What it wrote, to both outputs. */
  readonly output: () => string
  /** Sends a signal, and resolves with the exit code when the process has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts the service as a process of its own and waits until it listens. It ends with the tests of this file. */
export async function startProcess(options: ProcessOptions): Promise<ServiceProcess> {
  const { database, port = 0, env = {}, descriptors, command = [program, 'serve'] } = options
  const [file, args] = limitDescriptors([process.execPath, ...command], descriptors)
  const child = spawn(file, args, {
    env: {
      PATH: process.env.PATH,
      PORT: String(port),
      DATABASE_URL: database,
      PLANT_STORE_TOKEN: token,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => child.kill('SIGKILL')
  after(kill)
  const closed = once(child, 'close')
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const address = /address {3}(http:\S+)\n/.exec(output)?.[1]
        if (address !== undefined) resolve(address)
      })
    }
    closed.then(() => reject(new Error(`ended with: ${output}`)))
  })
  return {
    child,
    url,
    output: () => output,
    async end(signal) {
      child.kill(signal)
      const [exitCode] = await closed
      return exitCode
    },
  }
}

// The limit is inherited: a shell sets it and becomes the service.
function limitDescriptors(command: string[], descriptors: number | undefined): [string, string[]] {
  const [file = '', ...args] = command
  if (descriptors === undefined) return [file, args]
  return ['sh', ['-c', `ulimit -n ${descriptors} && exec "$0" "$@"`, ...command]]
}
