import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { schemaVersion } from '../../src/store/tables.ts'
import { ends } from '../cli/ends.ts'
import { findServer } from '../support/databases.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { findFreePort, newRole, password, query } from '../support/postgres.ts'
import { isRefusal } from '../support/refusal.ts'
import { openPostgresStore as open, quiet } from '../support/stores.ts'

describe('a PostgreSQL that cannot be the store', () => {
  /** The address of a store for a role that has only these rights on its tables. */
  async function newUser(rights: string): Promise<string> {
    const url = await postgres.newUrl()
    await (await open(url)).close()
    return newRole(
      url,
      (role) => `GRANT USAGE ON SCHEMA plant_store TO ${role};
       GRANT ${rights} ON ALL TABLES IN SCHEMA plant_store TO ${role}`,
    )
  }

  const cases: [title: string, prepare: () => Promise<string>, message: RegExp][] = [
    [
      'a wrong password',
      async () => (await postgres.newUrl()).replace(encodeURIComponent(password), 'wrong'),
      /refuses the user name or the password of DATABASE_URL/,
    ],
    [
      'a database that does not exist',
      async () => `${await findServer()}nothing`,
      /database that DATABASE_URL names does not exist/,
    ],
    [
      'a newer schema',
      async () => {
        const url = await postgres.newUrl()
        await (await open(url)).close()
        await query(url, `UPDATE plant_store.schema_version SET version = ${schemaVersion + 1}`)
        return url
      },
      new RegExp(
        `newer release \\(schema ${schemaVersion + 1}, this one knows ${schemaVersion}\\)`,
      ),
    ],
    [
      'a role that may not change plants',
      () => newUser('SELECT, INSERT'),
      /may not write to the database: grant it/,
    ],
    [
      'read-only transactions',
      async () => `${await postgres.newUrl()}?options=-c%20default_transaction_read_only=on`,
      /transactions of the user of DATABASE_URL read-only: reset default_transaction_read_only/,
    ],
    [
      'a role that may not make the schema',
      async () => newRole(await postgres.newUrl(), () => ''),
      /may not write to the database: grant it CREATE/,
    ],
    [
      'a database with another encoding',
      async () => {
        const server = await findServer()
        const name = `ascii_${randomBytes(6).toString('hex')}`
        const options = "ENCODING 'SQL_ASCII' TEMPLATE template0"
        await query(`${server}postgres`, `CREATE DATABASE ${name} ${options}`)
        return server + name
      },
      /has the encoding SQL_ASCII: create one with ENCODING 'UTF8'/,
    ],
  ]
  for (const [title, prepare, message] of cases) {
    it(`is refused with one line: ${title}`, async () => {
      const refusal = isRefusal(message, password, encodeURIComponent(password))
      await assert.rejects(open(await prepare()), refusal)
    })
  }

  /** Listens as another server, and answers its host and port. */
  async function pretend(answer: (socket: Socket) => void): Promise<string> {
    const other = createServer((socket) => answer(socket.on('error', () => {})))
    return new URL(await listen(other)).host
  }

  it('is refused with one line: another server, one that asks for Kerberos, none at all', async () => {
    const kerberos = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 7])
    const hosts = [
      await pretend((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      await pretend((socket) => socket.once('data', () => socket.write(kerberos))),
      `127.0.0.1:${await findFreePort()}`,
    ]
    const unanswered =
      /^No PostgreSQL server answers at 127\.0\.0\.1:\d+ of DATABASE_URL \([^)]+\)\. Check /
    for (const host of hosts) {
      const url = `postgres://a:b@${host}/x?sslmode=disable`
      const opening = openPrimary(url, quiet, { startTimeoutMs: 0 })
      await assert.rejects(opening, isRefusal(unanswered))
    }
  })

  it('is missed in one line that names the file of its Unix socket', async () => {
    const folder = newFolder()
    const file = `${folder}/.s.PGSQL.5432`
    const opening = openPrimary(`postgres:///plants?host=${folder}`, quiet, { startTimeoutMs: 0 })
    const missed = RegExp.escape(` answers at ${file} of DATABASE_URL (ENOENT). `)
    await assert.rejects(opening, isRefusal(new RegExp(missed)))
  })

  it('ends a command with the exit code 69 if no server answers', async () => {
    const list = `token list --database postgres://a:b@127.0.0.1:${await findFreePort()}/x`
    const said = /^No PostgreSQL server answers at \S+ of --database \(ECONNREFUSED\)\. /
    assert.equal(await ends(list, 69, said, newFolder()), '')
  })
})
