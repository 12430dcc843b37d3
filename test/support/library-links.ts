import { readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/**
 * Makes the symbolic links to the libraries of PostgreSQL. An npm package cannot contain links, so
 * it lists them; its install script, which would make them, does not run.
 */
export function linkLibraries(native: string): void {
  const listed: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of listed) {
    try {
      symlinkSync(relative(dirname(target), source), join(dirname(native), target))
    } catch (error) {
      // An earlier run made the link, or a test that runs at the same time.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
