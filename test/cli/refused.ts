import assert from 'node:assert/strict'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { run } from '../support/command.ts'

/** A command line, how it ends, the one line that it prints, and what it reads. */
export type Row = [
  line: string | string[],
  exitCode: number,
  message: RegExp | string,
  input?: string | Buffer,
]

/** Commands that use a store and never make one. */
export const readers = [
  ...['export', 'log', 'token list', 'token revoke tok_a', 'token prune'],
  ...['webhook list', 'webhook pause whk_a'],
]

/** What no message may repeat: the secrets that the rows contain. */
const secret = /s3cret|plst_\w|eyJ|correct-horse|x{99}/

/** Runs each row in one folder with a store, and checks that nothing in the folder has changed. */
export function describeRefused(
  title: string,
  rows: readonly Row[],
  prepare: () => Promise<string>,
): void {
  describe(title, () => {
    let folder: string
    let stored: string[]
    before(async () => {
      folder = await prepare()
      stored = await readAll(folder)
    })

    for (const [line, exitCode, message, input = ''] of rows) {
      const args = typeof line === 'string' ? line.split(' ') : line
      const of = input.length === 0 ? '' : ` < ${String(input).slice(0, 30)}`
      it(`and with ${exitCode}: ${JSON.stringify(args.join(' ').slice(0, 60) + of)}`, async () => {
        const result = await run(args, { folder, input })
        const [said = '', ...rest] = result.stderr.split('\n')
        if (typeof message === 'string') assert.equal(said, message)
        else assert.match(said, message)
        assert.doesNotMatch(said, secret)
        assert.deepEqual([rest, result.stdout, result.exitCode], [[''], '', exitCode])
      })
    }

    it('and changes nothing in the store or the folder', async () => {
      assert.deepEqual(await readAll(folder), stored)
    })
  })
}

/** Everything that the commands could have changed. */
async function readAll(folder: string): Promise<string[]> {
  const read: string[] = []
  for (const line of ['token list --json', 'webhook list --json', 'export --quiet']) {
    const { exitCode, stdout } = await run(line.split(' '), { folder })
    assert.equal(exitCode, 0)
    read.push(stdout)
  }
  // An open store has these two, with what it stores.
  const isLog = (name: string) => /-(wal|shm)$/.test(name) && name.startsWith('data/')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  for (const name of names.filter((one) => !isLog(one) && one !== 'data/plant-store.db')) {
    const path = join(folder, name)
    read.push(name, lstatSync(path).isFile() ? readFileSync(path, 'latin1') : '')
  }
  return read
}
