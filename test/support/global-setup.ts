import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findMemory } from './folder.ts'
import { copyCluster, newCluster, type PostgresServer, startServer } from './postgres.ts'

let server: PostgresServer
let temporary: string | undefined

/** Starts the PostgreSQL server that all test files share, with all temporary files in memory. */
export async function globalSetup(): Promise<void> {
  useMemory()
  const cluster = await newCluster()
  process.env.TEST_POSTGRES_CLUSTER = copyCluster(cluster)
  server = await startServer(cluster, { fsync: 'off' })
  process.env.TEST_POSTGRES_URL = server.toUrl('')
  process.on('exit', () => {
    server.kill()
    removeTemporary()
  })
}

export async function globalTeardown(): Promise<void> {
  await server.stop()
  removeTemporary()
}

/** Moves the temporary files of this run into a folder in memory, if there is one. */
function useMemory(): void {
  const memory = findMemory()
  if (memory === undefined) return
  temporary = mkdtempSync(join(memory, 'plant-store-tests-'))
  // PostgreSQL runs as another user where the tests run as root.
  chmodSync(temporary, 0o711)
  process.env.TMPDIR = temporary
}

function removeTemporary(): void {
  if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true })
}
