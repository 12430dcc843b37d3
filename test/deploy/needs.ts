import { spawnSync } from 'node:child_process'

/** Ends a run that this machine cannot do, with one line that says what is missing. */
export function requireRootAnd(...programs: string[]): void {
  requireAll(['root', ...programs])
}

export function requireAll(needs: readonly string[]): void {
  const missing = needs.filter((name) =>
    name === 'root' ? process.getuid?.() !== 0 : spawnSync('which', [name]).status !== 0,
  )
  if (missing.length === 0) return
  console.error(`This test needs ${needs.join(', ')}. Missing: ${missing.join(', ')}.`)
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
