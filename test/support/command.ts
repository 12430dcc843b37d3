import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { constants, devNull } from 'node:os'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { runProgram } from '../../src/cli/program.ts'
import { buildTerminal } from '../../src/cli/terminal.ts'
import { killAfterTest } from './child.ts'
import { releaseAfterTest } from './release.ts'
import { withRights } from './rights.ts'

const checkout: readonly [string, ...string[]] = [
  process.execPath,
  fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url)),
]

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
  /** The command line of the program; the checkout's own unless it is given. */
  readonly program?: readonly [string, ...string[]]
  /** The user that runs it, if it is not the one of the tests. */
  readonly uid?: number
  /** Descriptors that take its output instead. */
  readonly stdout?: number
  readonly stderr?: number
}

/** Starts the command as a process with an environment of its own. It is killed with the test. */
export function start(
  args: string[],
  {
    folder,
    env = {},
    input,
    isInputOpen = false,
    stdout,
    stderr,
    program = checkout,
    ...user
  }: RunOptions,
) {
  const [file, ...first] = program
  const child: ChildProcess = spawn(file, [...first, ...args], {
    ...user,
    cwd: folder,
    env: { ...(program === checkout && { PATH: process.env.PATH }), ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', stdout ?? 'pipe', stderr ?? 'pipe'],
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
  const ended = once(child, 'close').then(([code, signal]): Run => {
    // As a shell reports it.
    const exitCode = code ?? 128 + constants.signals[signal as NodeJS.Signals]
    return { exitCode, ...output }
  })

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

/** Runs the command to its end, as a process. */
export function runProcess(args: string[], options: RunOptions): Promise<Run> {
  return start(args, options).ended
}

const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
const home = process.cwd()
/** The folder of the runs inside this process, which has one working folder at a time. */
const inside = { folder: home, runs: 0 }

/**
 * Runs the command to its end inside this process: everything but `bin` and `main.ts`, at a
 * twentieth of the cost of a process. For standard streams, signals and crashes, start a process.
 */
export async function run(args: string[], { folder, env = {}, input }: RunOptions): Promise<Run> {
  enter(folder)
  const listeners = stopSignals.map((signal) => new Set<unknown>(process.listeners(signal)))
  const fd = openSync(devNull, 'r')
  const [output, errors] = [collect(), collect()]
  const terminal = buildTerminal({
    version: '0.0.0',
    command: 'npx plant-store',
    input: Object.assign(Readable.from(input === undefined ? [] : [Buffer.from(input)]), { fd }),
    output: output.stream,
    errors: errors.stream,
  })
  const stop = () => process.emit('SIGTERM', 'SIGTERM')
  let isRunning = true
  // A command that continues, though the test expects its end, must not outlive the test.
  releaseAfterTest(() => isRunning && stop())
  try {
    const exitCode = await runProgram(['node', 'plant-store', ...args], env, terminal)
    return { exitCode, stdout: output.text(), stderr: errors.text() }
  } finally {
    isRunning = false
    closeSync(fd)
    for (const [index, signal] of stopSignals.entries()) {
      for (const listener of process.listeners(signal)) {
        if (!listeners[index]?.has(listener)) process.off(signal, listener)
      }
    }
    leave()
  }
}

function enter(folder: string): void {
  if (inside.runs > 0 && inside.folder !== folder)
    throw new Error('Runs at the same time have one folder; start a process for another.')
  inside.folder = folder
  inside.runs += 1
  process.chdir(folder)
}

function leave(): void {
  inside.runs -= 1
  // A checkout in a home folder is closed to other users.
  if (inside.runs === 0) withRights(() => process.chdir(home))
}

/** The flag of Node.js that runs some code before a program. */
export function preload(code: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(code)}`
}

/** A stream that keeps all that is written to it. */
export function collect() {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(chunk)
      done()
    },
  })
  return { stream, chunks, text: () => Buffer.concat(chunks).toString() }
}
