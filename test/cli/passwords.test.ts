import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { run } from '../support/command.ts'
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
  const list = (env: Record<string, string>) =>
    run(['token', 'list', '--json'], { folder: newFolder(), env: { DATABASE_URL: url, ...env } })

  it('is read from PGPASSWORD', async () => {
    const { exitCode, stderr } = await list({ PGPASSWORD: password })
    assert.equal(exitCode, 0, stderr)
  })

  it('is read from the file that PGPASSFILE names', async () => {
    const other = `# a comment\n\notherhost:*:*:*:wrong\n`
    const { exitCode, stderr } = await list({ PGPASSFILE: newPasswordFile(`${other}${entry}\n`) })
    assert.equal(exitCode, 0, stderr)
  })

  it('is read from ~/.pgpass, with wildcards', async () => {
    const home = newFolder()
    writeFileSync(join(home, '.pgpass'), `*:*:*:plants:${password}\n`, { mode: 0o600 })
    const { exitCode, stderr } = await list({ HOME: home })
    assert.equal(exitCode, 0, stderr)
  })

  it('is not read from a file that other users can read', async () => {
    const path = newPasswordFile(entry, 0o640)
    const { exitCode, stderr } = await list({ PGPASSFILE: path })
    assert.equal(
      stderr,
      `${path} has the password, but others can read it. Change its mode to 0600.\n`,
    )
    assert.equal(exitCode, 78)
  })

  it('is missed in one line when PGPASSFILE cannot be read', async () => {
    const { exitCode, stderr } = await list({ PGPASSFILE: '/no/passwords' })
    assert.equal(
      stderr,
      'PGPASSFILE: cannot read /no/passwords: there is no such file or folder.\n',
    )
    assert.equal(exitCode, 78)
  })

  it('is found by copy for each of its stores, and not shown', async () => {
    const other = await newAddress()
    const PGPASSFILE = newPasswordFile(`${entry}\n${other.entry}\n`)
    const args = ['copy', '--from', url, '--to', other.url]
    const { exitCode, stderr } = await run(args, { folder: newFolder(), env: { PGPASSFILE } })
    assert.match(stderr, /^Copied: 0 plants/)
    assert.equal(exitCode, 0)
    const wrong = await run(args, { folder: newFolder(), env: { PGPASSWORD: 'wr0ng' } })
    assert.doesNotMatch(wrong.stderr, /DATABASE_URL|wr0ng/)
    assert.match(wrong.stderr, /--from/)
    assert.equal(wrong.exitCode, 78)
  })
})
