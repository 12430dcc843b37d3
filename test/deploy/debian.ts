import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { must } from './needs.ts'

/** Systems are made once, which takes a minute, and kept. */
const cache = '/var/cache/plant-store-test'

/** A folder with a fresh Debian 12 that has these packages. Copy it: it is shared by all runs. */
export function makeDebian(name: string, packages: readonly string[]): string {
  const root = join(cache, name)
  if (existsSync(root)) return root
  mkdirSync(cache, { recursive: true })
  const draft = `${root}.part-${process.pid}`
  const include = `--include=${['ca-certificates', ...packages].join(',')}`
  try {
    must('debootstrap', ['--variant=minbase', include, 'bookworm', draft])
    renameSync(draft, root)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return root
}
