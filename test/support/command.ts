import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { killAfterTest } from './child.ts'

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

export interface Run {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  /** What the command reads from its standard input. */
  readonly input?: string | Buffer
  /** Whether its standard input stays open after that. */
  readonly isInputOpen?: boolean
  /** A descriptor that takes its standard error instead. */
  readonly stderr?: number
}

/** Starts the command as a process with an environment of its own. It is killed with the test. */
export function start(
  args: string[],
  { folder, env = {}, input, isInputOpen = false, stderr }: RunOptions,
) {
  const child: ChildProcess = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', stderr ?? 'pipe'],
  })
  killAfterTest(child)
  child.stdin?.on('error', () => {}).write(input ?? '')
  if (!isInputOpen) child.stdin?.end()
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const ended = once(child, 'close').then(([exitCode]): Run => ({ exitCode, ...output }))

  /** Waits until the output matches, and answers the match. */
  function waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      function look(): void {
        const found = pattern.exec(output.stdout + output.stderr)
        if (found) resolve(found)
      }
      look()
      child.stdout?.on('data', look)
      child.stderr?.on('data', look)
      void ended.then(() => reject(new Error(`ended with: ${output.stdout}${output.stderr}`)))
    })
  }

  return { child, ended, waitFor, output }
}

/** Runs the command to its end. */
export function run(args: string[], options: RunOptions): Promise<Run> {
  return start(args, options).ended
}
