import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

export interface Run {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  /** What comes over standard input. */
  readonly input?: string | Buffer
  /** Whether more could come over standard input. */
  readonly isInputOpen?: boolean
}

/** Starts the command as a process of its own, with an environment of its own. It ends with the tests of this file. */
export function start(
  args: string[],
  { folder, env = {}, input, isInputOpen = false }: RunOptions,
) {
  const child: ChildProcess = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  child.stdin?.on('error', () => {}).write(input ?? '')
  if (!isInputOpen) child.stdin?.end()
  after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text
  })
  const ended = once(child, 'close').then(([exitCode]): Run => ({ exitCode, ...output }))

  /** Waits until the output holds this, and answers what it found. */
  async function waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(output.stdout + output.stderr)
      if (found) return found
      if (child.exitCode !== null) throw new Error(`ended with: ${output.stdout}${output.stderr}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  return { child, ended, waitFor, output }
}

/** Runs the command to its end. */
export function run(args: string[], options: RunOptions): Promise<Run> {
  return start(args, options).ended
}
