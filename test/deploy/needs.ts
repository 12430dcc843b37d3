import { spawnSync } from 'node:child_process'

/** Ends a run that this machine cannot do, with one line that says what is missing. */
export function requireRootAnd(...programs: string[]): void {
  const missing = programs.filter((name) => spawnSync('which', [name]).status !== 0)
  if (process.getuid?.() !== 0) missing.unshift('root')
  if (missing.length === 0) return
  console.error(`This test needs root, ${programs.join(', ')}. Missing: ${missing.join(', ')}.`)
  process.exit(1)
}

/** Runs a program to its end. Throws what it said if it fails. */
export function must(program: string, args: readonly string[], input = ''): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    input,
    maxBuffer: 2 ** 30,
  })
  if (error !== undefined) throw error
  if (status === 0) return stdout
  throw new Error(`${program} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`)
}
