import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run } from '../support/command.ts'
import { findDependencies, findTitles } from '../support/dependencies.ts'
import { newFolder } from '../support/folder.ts'

const root = join(import.meta.dirname, '..', '..')
const { node, v8, openssl, sqlite } = process.versions

describe('plant-store licenses', () => {
  it('prints a text for each package of production, and for Node.js', async () => {
    const { exitCode, stdout, stderr } = await run(['licenses'], { folder: newFolder() })
    const expected = [
      ...findDependencies(root),
      `Node.js ${node}, with V8 ${v8}, OpenSSL ${openssl} and SQLite ${sqlite}`,
    ]
    assert.deepEqual(findTitles(stdout).sort(), expected.sort())
    assert.match(stdout, /^Node\.js is licensed for use as follows:$/m)
    assert.match(stdout, /^Copyright Node\.js contributors/m)
    assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' })
  })
})
