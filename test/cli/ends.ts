import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Run, type RunOptions, run, runProcess, type start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { waitUntil } from '../support/wait.ts'

/** A folder with a store at the default path, made of lines of NDJSON. */
export async function newStore(input = '{"id":1,"name":"a"}\n'): Promise<string> {
  const folder = newFolder()
  await ends('import - --format ndjson --create --quiet', 0, '', { folder, input })
  return folder
}

/**
 * Runs a command, and checks its exit code and what it says on standard error. Returns its standard
 * output.
 */
export function ends(
  line: string | readonly string[],
  exitCode: number,
  said: string | RegExp,
  options: RunOptions | string,
): Promise<string> {
  const args = typeof line === 'string' ? line.split(' ') : [...line]
  const ended = run(args, typeof options === 'string' ? { folder: options } : options)
  return endsWith(ended, exitCode, said)
}

/** The same for a command that was started. */
export async function endsWith(
  ended: Promise<Run>,
  exitCode: number,
  said: string | RegExp,
): Promise<string> {
  const { stdout, stderr, ...end } = await ended
  if (typeof said === 'string') assert.equal(stderr, said)
  else assert.match(stderr, said)
  assert.equal(end.exitCode, exitCode, stderr)
  return stdout
}

/** Stops a command once it has got so far, and checks what it says of it. */
export async function stopAt(
  { child, ended }: ReturnType<typeof start>,
  isThere: () => boolean | Promise<boolean>,
  said: string | RegExp = 'Stopped.\n',
): Promise<void> {
  await waitUntil(isThere, 'the command has got so far')
  child.kill('SIGTERM')
  await endsWith(ended, 143, said)
  assert.equal(child.signalCode, 'SIGTERM')
}

/** What a command prints with `--json`. */
export async function readJson(line: string, options: RunOptions | string) {
  return JSON.parse(await ends(`${line} --json`, 0, /^/, options))
}

const program = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url))

/** The command, as a word of a shell. */
export const command = `"${process.execPath}" "${program}"`

/** Runs a line of shell in which `plant_store` is the command: for pipes and redirections. */
export function runShell(line: string, options: RunOptions): Promise<Run> {
  const script = `plant_store() { ${command} "$@"; }; ${line}`
  const env = { PATH: String(process.env.PATH), ...options.env }
  return runProcess([], { ...options, env, program: ['/bin/sh', '-c', script] })
}

/** Makes a named pipe unless it is there, and holds its other end open until the test ends. */
export function openPipe(path: string): number {
  if (!existsSync(path)) execFileSync('mkfifo', [path])
  return openFile(path, constants.O_RDWR | constants.O_NONBLOCK)
}

/** Opens a file until the test ends. */
export function openFile(path: string, flags: string | number): number {
  const file = openSync(path, flags)
  releaseAfterTest(() => closeSync(file))
  return file
}
