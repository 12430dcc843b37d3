import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  asUser,
  findFreePort,
  giveToServer,
  newDataFolder,
  password,
  writeForServer,
} from './postgres.ts'
import { releaseAfterTest } from './release.ts'

/** Debian puts it where the search path of an ordinary user does not lead. */
const program = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path))

/** Why there is no PgBouncer, or false. */
export const pgbouncerMissing = program === undefined && 'PgBouncer is not installed'

/** Starts PgBouncer, in transaction mode, before a server on 127.0.0.1. It is stopped with the test. */
export async function startPgBouncer(serverPort: number) {
  const folder = dirname(newDataFolder())
  giveToServer(folder)
  const config = join(folder, 'pgbouncer.ini')
  const port = await findFreePort()

  function writeConfig(backend: number): void {
    writeForServer(
      config,
      `[databases]
      postgres = host=127.0.0.1 port=${backend} user=plants password='${password}'
      [pgbouncer]
      listen_addr = 127.0.0.1
      listen_port = ${port}
      unix_socket_dir =
      auth_type = any
      pool_mode = transaction
      default_pool_size = 4
      server_login_retry = 0.1
      `.replaceAll(/^ +/gm, ''),
    )
  }

  writeConfig(serverPort)
  const child = spawn(String(program), [config], { ...asUser, stdio: ['ignore', 'ignore', 'pipe'] })
  releaseAfterTest(async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  await new Promise<void>((resolve, reject) => {
    let log = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text
      if (log.includes('process up')) resolve()
    })
    child.once('exit', () => reject(new Error(`PgBouncer ended: ${log}`)))
  })
  return {
    url: `postgres://plants@127.0.0.1:${port}/postgres`,
    /** Sends transactions to the server on another port from now on. */
    redirect(backend: number): void {
      writeConfig(backend)
      child.kill('SIGHUP')
    },
  }
}
