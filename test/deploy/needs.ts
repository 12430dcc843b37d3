import { spawnSync } from 'node:child_process'

/** Why a test that needs these programs, or to be root, is skipped; false if it is not. */
export function findMissing(...needs: string[]): string | false {
  const missing = needs.filter((name) =>
    name === 'root' ? process.getuid?.() !== 0 : spawnSync('which', [name]).status !== 0,
  )
  return missing.length > 0 && `missing: ${missing.join(', ')}`
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
