import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { runProcess } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { password } from '../support/postgres.ts'
import { endsWith } from './ends.ts'

/** The address of a new store without its password, and the entry of a password file for it. */
async function newAddress() {
  const url = await postgres.newUrl()
  await (await postgres.open(url)).close()
  const { hostname, port, pathname, username } = new URL(url)
  const entry = `${hostname}:${port}:${pathname.slice(1)}:${username}:${password}`
  return { url: url.replace(/:[^:@/]*@/, '@'), entry }
}

function newPasswordFile(content: string, mode = 0o600): string {
  const path = join(newFolder(), 'passwords')
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

const { url, entry } = await newAddress()

describe('the password of PostgreSQL', () => {
  // pgpass reads the environment of the process.
  async function lists(exitCode: number, said: string | RegExp, env: Record<string, string>) {
    const options = { folder: newFolder(), env: { DATABASE_URL: url, ...env } }
    const listed = await endsWith(runProcess(['token', 'list', '--json'], options), exitCode, said)
    assert.equal(listed, exitCode === 0 ? '[]\n' : '')
  }

  it('is read from PGPASSWORD', async () => {
    await lists(0, '', { PGPASSWORD: password })
  })

  it('is read from the file that PGPASSFILE names', async () => {
    const other = `# a comment\n\notherhost:*:*:*:wrong\n`
    await lists(0, '', { PGPASSFILE: newPasswordFile(`${other}${entry}\n`) })
  })

  it('is read from ~/.pgpass, with wildcards', async () => {
    const home = newFolder()
    writeFileSync(join(home, '.pgpass'), `*:*:*:plants:${password}\n`, { mode: 0o600 })
    await lists(0, '', { HOME: home })
  })

  it('is that of each host, where there are several', async () => {
    const { host, hostname, port } = new URL(url)
    const closed = `${hostname}:1`
    const lines = `${closed}:*:*:wrong\n${hostname}:${port}:*:*:${password}\n`
    const DATABASE_URL = url.replace(host, `${closed},${host}`)
    await lists(0, '', { PGPASSFILE: newPasswordFile(lines), DATABASE_URL })
  })

  it('is not read from a file that other users can read', async () => {
    const said =
      /password file "\S+" has group or world access; permissions should be.*^PostgreSQL refuses the user name or the password of DATABASE_URL\.$/ms
    await lists(78, said, { PGPASSFILE: newPasswordFile(entry, 0o640) })
  })

  it('is missed in one line where there is none', async () => {
    const said = 'PostgreSQL refuses the user name or the password of DATABASE_URL.\n'
    await lists(78, said, {})
    await lists(78, said, { PGPASSFILE: '/no/passwords' })
  })

  it('is found by copy for each of its stores, and not shown', async () => {
    const other = await newAddress()
    const PGPASSFILE = newPasswordFile(`${entry}\n${other.entry}\n`)
    const args = ['copy', '--from', url, '--to', other.url]
    const copy = (env: Record<string, string>) => runProcess(args, { folder: newFolder(), env })
    await endsWith(copy({ PGPASSFILE }), 0, /^Copied: 0 plants/)
    const said = /^(?!.*(DATABASE_URL|wr0ng)).*--from/s
    await endsWith(copy({ PGPASSWORD: 'wr0ng' }), 78, said)
  })
})
