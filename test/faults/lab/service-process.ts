import { fileURLToPath } from 'node:url'
import { programEnv } from '../../support/child.ts'
import { start } from '../../support/command.ts'

/** The operator's token of all services in the fault tests. */
export const token = 'a-token-for-the-fault-tests'

const program = fileURLToPath(new URL('../../../bin/plant-store.js', import.meta.url))
/** With the limit of `npm start`, without which V8 takes up to 100 MB more under load. */
const service = ['--max-semi-space-size=16', program, 'serve']

/** The program of the service with one thing changed: see service-program.ts. */
export function programOf(change: string): readonly string[] {
  if (change === '') return service
  return [fileURLToPath(new URL('service-program.ts', import.meta.url)), change]
}

export interface ProcessOptions {
  /** The value of DATABASE_URL. */
  readonly database: string
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  /** How many files and connections the process may have open. */
  readonly descriptors?: number
  /** Another program instead of the service, for the controls. */
  readonly command?: readonly string[]
}

export type ServiceProcess = Awaited<ReturnType<typeof startProcess>>

/** Starts the service as a process and waits until it listens. It is killed with the test. */
export async function startProcess(options: ProcessOptions) {
  const { database, port = 0, env = {}, descriptors, command = service } = options
  const { child, ended, waitFor, output } = start([], {
    folder: process.cwd(),
    program: limitDescriptors([process.execPath, ...command], descriptors),
    env: {
      ...(programEnv as Record<string, string>),
      PORT: String(port),
      DATABASE_URL: database,
      PLANT_STORE_TOKEN: token,
      // A log of every request would be work for both sides.
      LOG_LEVEL: 'warn',
      ...env,
    },
  })
  const [, url = ''] = await waitFor(/address {3}(http:\S+)\n/)
  return {
    child,
    url,
    /** Everything that the process wrote to stdout and stderr. */
    output: () => output.stdout + output.stderr,
    /** Sends a signal and waits for the end of the process. Answers the exit code. */
    async end(signal: NodeJS.Signals): Promise<number | null> {
      child.kill(signal)
      return (await ended).exitCode
    },
  }
}

// Processes inherit the limit: a shell sets it and becomes the service.
function limitDescriptors(command: [string, ...string[]], descriptors?: number): typeof command {
  if (descriptors === undefined) return command
  return ['sh', '-c', `ulimit -n ${descriptors} && exec "$0" "$@"`, ...command]
}
