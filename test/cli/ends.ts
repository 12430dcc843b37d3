import assert from 'node:assert/strict'
import { type Run, type RunOptions, run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

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

/** What a command prints with `--json`. */
export async function readJson(line: string, options: RunOptions | string) {
  return JSON.parse(await ends(`${line} --json`, 0, /^/, options))
}
