import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { findMissing, must } from './needs.ts'

const folder = join(import.meta.dirname, '..', '..', '.github', 'workflows')
const files = globSync('*.yml', { cwd: folder }).map((name) => join(folder, name))
const skip = findMissing('actionlint')

describe('the workflows of the public CI', () => {
  it('please actionlint', { skip }, () => {
    assert.equal(must('actionlint', files), '')
  })

  it('may only read, and name a version of every action', () => {
    assert.equal(files.length, 2)
    for (const file of files) {
      const text = readFileSync(file, 'utf8')
      assert.deepEqual(text.match(/^ *permissions:\n( +.*\n)+/gm), [
        'permissions:\n  contents: read\n',
      ])
      const actions = [...text.matchAll(/uses: (\S+)/g)].map(([, action = '']) => action)
      assert.ok(actions.length >= 2)
      for (const action of actions) assert.match(action, /^actions\/[\w-]+@(v\d+|[0-9a-f]{40})$/)
    }
  })
})
