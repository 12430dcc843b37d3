import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { runProcess } from '../../support/command.ts'
import type { Engine } from '../../support/engines.ts'
import { newFolder } from '../../support/folder.ts'
import { query } from '../../support/postgres.ts'
import { releaseAfterTest } from '../../support/release.ts'

/** A way to keep the state of a store that is stopped, and to go back to it. */
export async function keepState(engine: Engine, database: string): Promise<() => Promise<void>> {
  if (engine.name === 'PostgreSQL') {
    const name = new URL(database).pathname.slice(1)
    const admin = database.replace(/[^/]+$/, 'postgres')
    const drop = (each: string) => query(admin, `DROP DATABASE IF EXISTS ${each} WITH (FORCE)`)
    await drop(`${name}_kept`)
    await query(admin, `CREATE DATABASE ${name}_kept TEMPLATE ${name}`)
    releaseAfterTest(() => drop(`${name}_kept`))
    return async () => {
      await drop(name)
      await query(admin, `CREATE DATABASE ${name} TEMPLATE ${name}_kept`)
    }
  }
  const folder = newFolder()
  const file = join(folder, 'backup.db')
  const env = { DATABASE_URL: database }
  const path = database.replace('sqlite:', '')
  assert.equal((await runProcess(['backup', file], { folder, env })).exitCode, 0)
  return async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
    assert.equal((await runProcess(['restore', file], { folder, env })).exitCode, 0)
  }
}
