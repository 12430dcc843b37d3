import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'

const folder = newFolder()

/** Command lines of 1.x, and what their answer names. */
const gone: [args: string, instead: RegExp][] = [
  ['conformance http://127.0.0.1:3000 --token-file token --only spec', /openapi\.json.*Schemath/],
  ['conformance --help', /openapi\.json/],
  [
    'follow --from https://plants.example --to sqlite:copy.db',
    /Litestream.*PostgreSQL.*mirror\(\)/,
  ],
  ['import plants.csv --url http://127.0.0.1:3000 --token secret', /curl.*the page.*client/],
  ['licenses', /THIRD-PARTY-LICENSES\.txt/],
  ['list --name ficus --json', /the page.*client.*curl.*export/],
  ['list --url http://127.0.0.1:3000 --token secret', /the page.*client.*curl/],
]

describe('a command that is gone', () => {
  for (const [args, instead] of gone) {
    it(`ends with 64 and says in one line what to use instead: ${args}`, async () => {
      const { exitCode, stdout, stderr } = await run(args.split(' '), { folder })
      assert.match(stderr, /^[\w -]+ is gone since 2\.0\.0\. [^\n]+\n$/)
      assert.match(stderr, instead)
      assert.deepEqual([stdout, exitCode], ['', 64])
    })
  }

  it('is not in the help', async () => {
    const { stdout } = await run(['--help'], { folder })
    assert.match(stdout, /^ {2}import /m)
    for (const [args] of gone.filter(([args]) => !args.startsWith('import'))) {
      assert.doesNotMatch(stdout, new RegExp(`^  ${args.split(' ')[0]}\\b`, 'm'))
    }
    assert.doesNotMatch((await run(['import', '--help'], { folder })).stdout, /--url/)
  })
})
