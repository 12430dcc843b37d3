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
const mistakes: [
  title: string,
  args: string[],
  input: string,
  exitCode: number,
  message: RegExp,
][] = [
  [
    'a file that does not exist',
    ['missing.csv'],
    '',
    66,
    /^Cannot read missing\.csv: there is no such file/,
  ],
  ['a folder', ['.', '--format', 'csv'], '', 66, /^Cannot read \.: it is a folder/],
  ['a name that tells no format', ['plants.txt'], '', 78, /--format ndjson or csv/],
  ['an unknown format', ['-', '--format', 'xml'], '', 78, /^--format must be ndjson or csv/],
  ['an extension as the format', ['-', '--format', 'tsv'], '', 78, /^--format must be ndjson or/],
  [
    'an unknown rule for conflicts',
    ['-', '--on-conflict', 'merge'],
    '',
    78,
    /^--on-conflict must be fail, skip or replace, not "merge"\.\n$/,
  ],
  [
    'a missing column',
    ['-', '--format', 'csv'],
    'id\n1\n',
    65,
    /^line 1: The header has no column "name"\. It has: "id"\. Rename/,
  ],
  ...(
    [
      ['vertical bars', '"id"|"name"\n', /bars, not by commas\. Use: --delimiter '\|'\n$/],
      ['other names', 'Nr;Pflanze\n', /no columns "id" and "name"\. It has: "Nr", "Pflanze"\./],
      ['a column twice', 'id,name,ID\n', /names the column "id" twice\.\n$/],
      ['a workbook', 'PK\u0003\u0004\u0014\n', /a workbook, not CSV\. Open it and save it as/],
      [
        'carriage returns alone',
        'id,name,tag\r1,a,b\r',
        /CR alone\. Save the file with LF or CR LF/,
      ],
      ['a long line of them', `id,name\r${'1,a\r'.repeat(300_000)}`, /CR alone/],
      ['no header', '1,Ficus,indoor\n', /"1,Ficus,indoor" is no header: put .*"id,name,tag"/],
    ] as const
  ).map(([title, input, message]): (typeof mistakes)[number] => [
    `CSV with ${title}`,
    ['-', '--format', 'csv'],
    input,
    65,
    new RegExp(`^line 1: .*${message.source}`, 's'),
  ]),
  ...(
    [
      ['semicolons', ',', 'id;name;tag\n', /semicolons, not by commas\. Use: --delimiter ';'\n$/],
      ['tabs', 'comma', '"Id"\t"Name"\n', /tabs, not by commas\. Use: --delimiter tab\n$/],
      ['commas', 'tab', 'sep=,\r\nid,name\n', /commas, not by tabs\. Use: --delimiter ','\n$/],
    ] as const
  ).map(([title, delimiter, input, message]): (typeof mistakes)[number] => [
    `CSV with ${title} that is said to have another delimiter`,
    ['-', '--format', 'csv', '--delimiter', delimiter],
    input,
    65,
    message,
  ]),
  ...['ab', '"', '\n', ''].map((delimiter): (typeof mistakes)[number] => [
    `the delimiter ${JSON.stringify(delimiter)}`,
    ['-', '--format', 'csv', '--delimiter', delimiter],
    '',
    78,
    /^--delimiter must be one character/,
  ]),
  [
    'a delimiter for NDJSON',
    ['plants.ndjson', '--delimiter', ';'],
    '',
    78,
    /^--delimiter is for CSV only/,
  ],
  [
    'a file in another format',
    ['-', '--format', 'ndjson'],
    'id,name\n1,a\n',
    65,
    /^line 1: This is not NDJSON/,
  ],
  [
    'a folder for rejects that does not exist',
    ['-', '--format', 'csv', '--rejects', 'no/where'],
    'id,name\n',
    73,
    /^Cannot write --rejects no\/where/,
  ],
  [
    'a store in memory',
    ['-', '--format', 'csv', '--database', 'sqlite::memory:'],
    'id,name\n',
    78,
    /^A store in memory/,
  ],
]

describe('plant-store import ends with one clear line for', () => {
  for (const [title, args, input, exitCode, message] of mistakes) {
    it(title, async () => {
      const result = await run(['import', ...args, '--create'], { folder: newFolder(), input })
      assert.match(result.stderr, message)
      assert.equal(result.exitCode, exitCode)
    })
  }

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

  it('control characters in a file or its name, shown as escapes', async () => {
    const folder = newFolder()
    const name = 'a\u001b[2J\nb.csv'
    const missing = await run(['import', name], { folder })
    assert.equal(
      missing.stderr,
      'Cannot read a\\u001b[2J\\u000ab.csv: there is no such file or folder.\n',
    )
    const args = ['import', '-', '--format', 'csv', '--create']
    const wrong = await run(args, { folder, input: 'id,\u009b31m\u007f\n' })
    assert.match(wrong.stderr, /^line 1: .* It has: "id", "\\u009b31m\\u007f"\. Rename .*\n$/)
    const other = await run(args, { folder, input: 'id,name,\u009b31m\u007f\n' })
    assert.match(other.stderr, /^Columns that are not stored: \\u009b31m\\u007f\.\n/)
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
