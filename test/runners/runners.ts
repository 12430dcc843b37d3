/** The test kit of the packed package under Vitest and Jest. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { installPackages, npm, pack } from '../support/packages.ts'

const folder = import.meta.dirname
const programs: [name: string, args: string[]][] = [
  ['Vitest', ['vitest/vitest.mjs', 'run', '--globals']],
  ['Jest', ['jest/bin/jest.js', '--transform={}', '--rootDir=.']],
]

describe('plant-store/testing', () => {
  before(async () => {
    await installPackages(folder)
    await npm(folder, [
      'install',
      '--no-save',
      '--prefer-offline',
      '--ignore-scripts',
      await pack(),
    ])
  })

  for (const [name, [program = '', ...flags]] of programs) {
    it(`works under ${name}, which ends by itself and prints no line of ours`, () => {
      const args = [join(folder, 'node_modules', program), ...flags]
      const { status, stdout, stderr } = spawnSync(process.execPath, args, {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: process.env.PATH, NO_COLOR: '1', NODE_OPTIONS: '--experimental-vm-modules' },
        timeout: 120_000,
      })
      const output = stdout + stderr
      assert.equal(status, 0, output)
      assert.match(output, /Tests:? +5 passed/)
      assert.doesNotMatch(output, /did not exit|"level":|[Hh]anging|MaxListeners/)
    })
  }
})
