import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { must } from '../deploy/needs.ts'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const version = '0.5.17'
const cache = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
const folder = join(cache, `litestream-${version}`)

/** Its program, which `LITESTREAM` may name. Otherwise Go builds it once, in about 3 minutes. */
const program = process.env.LITESTREAM ?? join(folder, 'litestream')

/** Why Litestream cannot be run here, or false. */
export const litestreamMissing: string | false = findReason()

function findReason(): string | false {
  if (existsSync(program)) return false
  const { error, status, stderr } = spawnSync(
    'go',
    ['install', `github.com/benbjohnson/litestream/cmd/litestream@v${version}`],
    { env: { ...process.env, CGO_ENABLED: '0', GOBIN: folder }, encoding: 'utf8' },
  )
  if (error) return 'Go is missing, which builds Litestream: install it, or set LITESTREAM'
  return status === 0 ? false : `Go cannot build Litestream: ${stderr}`
}

/** Writes the configuration of docs/running.md, with a folder as the replica. */
export function configure(database: string): string {
  const config = join(newFolder(), 'litestream.yml')
  const replica = join(newFolder(), 'replica')
  writeFileSync(
    config,
    `dbs:
  - path: ${database}
    replica:
      path: ${replica}
      sync-interval: 1s
`,
  )
  return config
}

/** Replicates until it is ended. It is killed with the test. */
export async function replicate(config: string): Promise<ChildProcess> {
  const { child, waitFor } = start(['replicate', '-config', config], {
    folder: newFolder(),
    program: [program],
    env: process.env as Record<string, string>,
  })
  await waitFor(/replicating to/)
  return child
}

/** Ends a process, and waits for its end. */
export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, 'close')
  child.kill(signal)
  await ended
}

/** Restores the latest state of a database into another file. */
export function restore(config: string, database: string, output: string): void {
  const args = ['restore', '-config', config, '-o', output, database]
  must(program, args)
}
