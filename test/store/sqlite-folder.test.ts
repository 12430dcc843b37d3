import assert from 'node:assert/strict'
import { win32 } from 'node:path'
import { describe, it } from 'node:test'
import { findMissing } from '../../src/store/sqlite/folder.ts'

describe('the folders that a new store needs', () => {
  it('end at a drive or a share that does not exist', () => {
    let asked = 0
    const nowhere = () => {
      assert.ok(++asked < 100, 'the search goes on for ever')
      return false
    }
    assert.deepEqual(findMissing('Z:\\x\\y', nowhere, win32), ['Z:\\', 'Z:\\x', 'Z:\\x\\y'])
    const share = '\\\\server\\share\\'
    assert.deepEqual(findMissing(`${share}x`, nowhere, win32), [share, `${share}x`])
  })

  it('begin below the first one that exists', () => {
    const exists = (folder: string) => folder === 'C:\\x'
    assert.deepEqual(findMissing('C:\\x\\y\\z', exists, win32), ['C:\\x\\y', 'C:\\x\\y\\z'])
    assert.deepEqual(findMissing('C:\\x', exists, win32), [])
  })
})
