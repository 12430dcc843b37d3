import { newCluster, type PostgresServer, startServer } from './postgres.ts'

let server: PostgresServer

/** Starts the PostgreSQL server that all test files share. */
export async function globalSetup(): Promise<void> {
  server = await startServer(await newCluster(), { fsync: 'off' })
  process.env.TEST_POSTGRES_URL = server.toUrl('')
  process.on('exit', server.kill)
}

export async function globalTeardown(): Promise<void> {
  await server.stop()
}
