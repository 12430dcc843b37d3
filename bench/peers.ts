import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('.', import.meta.url))

/** Installs the peers into bench/node_modules on first use. */
export function installPeers(progress: (text: string) => void): void {
  if (existsSync(new URL('node_modules/.package-lock.json', import.meta.url))) return
  progress('installing the peers into bench/node_modules, once (npm ci)')
  const options = [
    'ci',
    '--prefix',
    folder,
    '--no-workspaces',
    '--ignore-scripts',
    '--loglevel=error',
  ]
  const { status, stderr, error } = spawnSync('npm', options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm ci --prefix bench failed: ${error?.message ?? stderr}`)
}
