import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { withoutRights } from '../support/rights.ts'
import { waitUntil } from '../support/wait.ts'

/** The arguments, the input, and how the command ends. */
describe('plant-store import ends with one clear line for', () => {
  it('a file whose reading fails', { skip: !existsSync('/proc/self/mem') }, async () => {
    const args = ['import', '/proc/self/mem', '--format', 'ndjson', '--create']
    const { exitCode, stderr } = await run(args, { folder: newFolder() })
    assert.equal(stderr, 'Cannot read /proc/self/mem: the disk reports an error.\n')
    assert.equal(exitCode, 66)
  })

  it('a file for rejects that holds something else, which stays as it is', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'plants.csv'), 'id,name\n1,a\n')
    writeFileSync(join(folder, 'notes.txt'), 'mine')
    const args = ['import', 'plants.csv', '--rejects', 'notes.txt']
    const { exitCode, stderr } = await run(args, { folder })
    assert.match(stderr, /^--rejects notes\.txt holds something other than rejected lines/)
    assert.equal(exitCode, 73)
    assert.equal(readFileSync(join(folder, 'notes.txt'), 'utf8'), 'mine')
    assert.equal(existsSync(join(folder, 'data')), false)
  })

  it('control characters in the columns that are not stored, shown as escapes', async () => {
    const args = ['import', '-', '--format', 'csv', '--create']
    const input = 'id,name,\u009b31m\u007f\n'
    const { stderr } = await run(args, { folder: newFolder(), input })
    assert.match(stderr, /^Columns that are not stored: \\u009b31m\\u007f\.\n/)
  })

  it('a disk without space for rejects', {
    skip: !existsSync('/dev/full') && 'there is no /dev/full',
  }, async () => {
    const args = ['import', '-', '--format', 'ndjson', '--rejects', '/dev/full', '--create']
    const { exitCode, stderr } = await run(args, { folder: newFolder(), input: '{"id":1}\n' })
    assert.match(
      stderr,
      /^Imported so far into .*: 0 stored, 1 invalid .*\nCannot write --rejects \/dev\/full: the disk is full\. Lines after 1/,
    )
    assert.equal(exitCode, 73)
  })

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`${signal}, even while standard input is silent`, async () => {
      const folder = newFolder()
      const args = ['import', '-', '--format', 'csv', '--create']
      const running = start(args, { folder, input: 'id,name\n1,a\n', isInputOpen: true })
      const database = join(folder, 'data/plant-store.db')
      while (!existsSync(`${database}-wal`)) await new Promise((resolve) => setTimeout(resolve, 10))
      running.child.kill(signal)
      const { exitCode, stderr } = await running.ended
      assert.match(
        stderr,
        /^Imported so far into sqlite:.*: 0 stored .*\nStopped after line 0\. Run the same command again/,
      )
      assert.equal(exitCode, code)
    })
  }

  it('SIGHUP, even while a named pipe has no writer', {
    skip: process.platform !== 'linux' && 'only Linux tells which signals a process handles',
  }, async () => {
    const folder = newFolder()
    execFileSync('mkfifo', [join(folder, 'pipe.csv')])
    const { child, ended } = start(['import', 'pipe.csv', '--create'], { folder })
    await waitUntil(() => handlesHangUp(Number(child.pid)), 'the command handles SIGHUP')
    child.kill('SIGHUP')
    assert.equal((await ended).stderr, 'Stopped before pipe.csv was opened.\n')
    assert.equal(child.signalCode, 'SIGHUP')
  })

  it('a named pipe with a mistake, even while its writer stays', { timeout: 60_000 }, async () => {
    const folder = newFolder()
    const path = join(folder, 'pipe.csv')
    execFileSync('mkfifo', [path])
    const { ended } = start(['import', 'pipe.csv', '--create'], { folder })
    const writer = openSync(path, 'r+')
    writeSync(writer, 'none\n')
    const { exitCode, stderr } = await ended.finally(() => closeSync(writer))
    assert.match(stderr, /^line 1: The header has no columns "id" and "name"\. It has: "none"/)
    assert.equal(exitCode, 65)
  })

  it('a file that may not be read', async () => {
    const folder = newFolder()
    const command = ['import', 'plants.csv', '--create']
    writeFileSync(join(folder, 'plants.csv'), 'id,name\n')
    // Another user may not be able to load the code of the command.
    assert.equal((await run(command, { folder })).exitCode, 0)
    chmodSync(join(folder, 'plants.csv'), 0)
    chmodSync(folder, 0o755)
    const { exitCode, stderr } = await withoutRights(() => run(command, { folder }))
    assert.match(stderr, /^Cannot read plants\.csv: permission denied/)
    assert.equal(exitCode, 66)
  })
})

/** Whether a process has a handler for SIGHUP, the first of the signals in the mask. */
function handlesHangUp(pid: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (BigInt(`0x${mask ?? '0'}`) & 1n) === 1n
}
