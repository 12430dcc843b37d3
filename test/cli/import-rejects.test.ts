import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { withoutRights } from '../support/rights.ts'
import { waitUntil } from '../support/wait.ts'
import { ends, endsWith } from './ends.ts'
import { runShell } from './shell.ts'

describe('plant-store import --rejects', () => {
  it('says in one line that the rejects of another user cannot be read', async () => {
    const folder = newFolder()
    chmodSync(folder, 0o777)
    writeFileSync(join(folder, 'plants.ndjson'), '{}\n', { mode: 0o644 })
    writeFileSync(join(folder, 'rejects'), '{"line":1}\n', { mode: 0o200 })
    const said = 'Cannot write --rejects rejects: permission denied.\n'
    const line = 'import plants.ndjson --rejects rejects --create'
    // Loads the command: the other user may not read the checkout.
    const other = newFolder()
    writeFileSync(join(other, 'plants.ndjson'), '{}\n')
    await ends(line, 65, / The rejected lines are in rejects\.\n$/, other)
    await withoutRights(() => ends(line, 73, said, folder))
  })

  it('never writes over standard input', async () => {
    const folder = newFolder()
    const path = join(folder, 'plants.ndjson')
    const content = '{"line":1,"id":1,"name":"a"}\n'
    writeFileSync(path, content)
    const line = 'plant_store import - --format ndjson --rejects plants.ndjson < plants.ndjson'
    const said = /^--rejects plants\.ndjson is the file to import/
    await endsWith(runShell(line, { folder }), 73, said)
    assert.equal(readFileSync(path, 'utf8'), content)
  })

  /** Imports lines, and answers their rejects, which replace those of an earlier import. */
  async function reject(input: string | Buffer, folder = newFolder()) {
    const line = 'import - --format ndjson --rejects bad --create'
    const said = / The rejected lines are in bad\.\n$/
    await ends(line, 65, said, { folder, input })
    const written = readFileSync(join(folder, 'bad'), 'utf8')
    const rejects: { line: number; text: string }[] = written
      .trimEnd()
      .split('\n')
      .map((one) => JSON.parse(one))
    return { written, rejects, folder }
  }

  it('writes control characters as escapes, which JSON reads as what they are', async () => {
    const text = '{"id":"\u009b31m\u007f\u202e"}'
    const { written, rejects } = await reject(`${text}\n`)
    assert.doesNotMatch(written.trimEnd(), /\p{Cc}|\u202e/u)
    assert.equal(rejects[0]?.text, text)
  })

  it('writes 100,000 lines and no more, however small the file is that has them', async () => {
    const folder = newFolder()
    const input = gzipSync(`{"id":1,"name":"a"}\n${'x\n'.repeat(100_010)}`)
    const said = /bad ends here: it has 100,000 lines\.\n.*100,010 invalid/s
    await ends('import - --format ndjson --rejects bad --create', 65, said, { folder, input })
    const rejects = readFileSync(join(folder, 'bad'), 'utf8').trimEnd().split('\n')
    assert.equal(rejects.length, 100_000)
    assert.equal(JSON.parse(rejects.at(-1) as string).line, 100_001)
  })

  it('replaces the rejects of an earlier import', async () => {
    const { folder } = await reject('{"id":1}\n{"id":2}\n')
    const { rejects } = await reject('{"id":3}\n', folder)
    const texts = rejects.map(({ text }) => text)
    assert.deepEqual(texts, ['{"id":3}'])
  })
})

const ndjson = 'import - --format ndjson --create'

describe('plant-store import ends with one clear line for', () => {
  it('control characters in the columns that are not stored, shown as escapes', async () => {
    const options = { folder: newFolder(), input: 'id,name,\u009b31m\u007f\n' }
    const said = /^Columns that are not stored: \\u009b31m\\u007f\.\n/
    await ends('import - --format csv --create', 0, said, options)
  })

  it('a disk without space for rejects', {
    skip: !existsSync('/dev/full') && 'there is no /dev/full',
  }, async () => {
    const said =
      /^Imported so far into .*: 0 stored, 1 invalid .*\nCannot write --rejects \/dev\/full: the disk is full\. Lines after 1/
    const options = { folder: newFolder(), input: '{"id":1}\n' }
    await ends(`${ndjson} --rejects /dev/full`, 73, said, options)
  })

  it('SIGHUP, even while a named pipe has no writer', {
    skip: process.platform !== 'linux' && 'only Linux tells which signals a process handles',
  }, async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'pipe.csv')])
    const { child, ended } = start(['import', 'pipe.csv', '--create'], { folder })
    await waitUntil(() => handlesHangUp(Number(child.pid)), 'the command handles SIGHUP')
    child.kill('SIGHUP')
    assert.equal((await ended).stderr, 'Stopped.\n')
    assert.equal(child.signalCode, 'SIGHUP')
  })

  it('a file that may not be read', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'plants.csv'), 'id,name\n')
    // Another user may not be able to load the code of the command.
    await ends('import plants.csv --create', 0, /^Imported/, folder)
    chmodSync(join(folder, 'plants.csv'), 0)
    chmodSync(folder, 0o755)
    const said = 'Cannot read plants.csv: permission denied.\n'
    await withoutRights(() => ends('import plants.csv', 66, said, folder))
  })
})

/** Whether a process has a handler for SIGHUP, the first of the signals in the mask. */
function handlesHangUp(pid: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (BigInt(`0x${mask ?? '0'}`) & 1n) === 1n
}
