import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { runProcess } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { password } from '../support/postgres.ts'

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

describe('the password of PostgreSQL', () => {
  let url: string
  let entry: string
  before(async () => {
    ;({ url, entry } = await newAddress())
  })
  // pgpass reads the environment of the process.
  const list = (env: Record<string, string>, address = url) =>
    runProcess(['token', 'list', '--json'], {
      folder: newFolder(),
      env: { DATABASE_URL: address, ...env },
    })
  const found = { exitCode: 0, stdout: '[]\n', stderr: '' }

  it('is read from PGPASSWORD', async () => {
    assert.deepEqual(await list({ PGPASSWORD: password }), found)
  })

  it('is read from the file that PGPASSFILE names', async () => {
    const other = `# a comment\n\notherhost:*:*:*:wrong\n`
    assert.deepEqual(await list({ PGPASSFILE: newPasswordFile(`${other}${entry}\n`) }), found)
  })

  it('is read from ~/.pgpass, with wildcards', async () => {
    const home = newFolder()
    writeFileSync(join(home, '.pgpass'), `*:*:*:plants:${password}\n`, { mode: 0o600 })
    assert.deepEqual(await list({ HOME: home }), found)
  })

  it('is that of each host, where there are several', async () => {
    const { host, hostname, port } = new URL(url)
    const closed = `${hostname}:1`
    const lines = `${closed}:*:*:wrong\n${hostname}:${port}:*:*:${password}\n`
    const PGPASSFILE = newPasswordFile(lines)
    assert.deepEqual(await list({ PGPASSFILE }, url.replace(host, `${closed},${host}`)), found)
  })

  it('is not read from a file that other users can read', async () => {
    const { exitCode, stderr } = await list({ PGPASSFILE: newPasswordFile(entry, 0o640) })
    assert.match(stderr, /password file "\S+" has group or world access; permissions should be/)
    assert.match(stderr, /^PostgreSQL refuses the user name or the password of DATABASE_URL\.$/m)
    assert.equal(exitCode, 78)
  })

  it('is missed in one line where there is none', async () => {
    for (const env of [{}, { PGPASSFILE: '/no/passwords' }]) {
      const { exitCode, stderr } = await list(env)
      assert.equal(stderr, 'PostgreSQL refuses the user name or the password of DATABASE_URL.\n')
      assert.equal(exitCode, 78)
    }
  })

  it('is found by copy for each of its stores, and not shown', async () => {
    const other = await newAddress()
    const PGPASSFILE = newPasswordFile(`${entry}\n${other.entry}\n`)
    const args = ['copy', '--from', url, '--to', other.url]
    const copied = await runProcess(args, { folder: newFolder(), env: { PGPASSFILE } })
    assert.match(copied.stderr, /^Copied: 0 plants/)
    assert.equal(copied.exitCode, 0)
    const env = { PGPASSWORD: 'wr0ng' }
    const { exitCode, stderr } = await runProcess(args, { folder: newFolder(), env })
    assert.doesNotMatch(stderr, /DATABASE_URL|wr0ng/)
    assert.match(stderr, /--from/)
    assert.equal(exitCode, 78)
  })
})
