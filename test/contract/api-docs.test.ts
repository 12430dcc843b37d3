import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { errorNumbers, toStatus } from '../../src/contract/errors.ts'
import { operations } from '../../src/contract/operations.ts'

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

describe('docs/api.md', () => {
  for (const { method, path } of Object.values(operations)) {
    it(`has a row for ${method} ${path}`, () => {
      assert.ok(page.includes(`\n| \`${method} ${path}\``))
    })
  }
})

describe('the table of error numbers in docs/api.md', () => {
  const rows = [...page.matchAll(/^\| (\d{5}) \| (\d+) \| (.*) \|$/gm)].map(
    ([, number, status, meaning = '']) => ({
      number: Number(number),
      status: Number(status),
      meaning: meaning.trim(),
    }),
  )

  it('has every number of the catalogue, and no other, in ascending order', () => {
    assert.deepEqual(
      rows.map(({ number }) => number),
      errorNumbers,
    )
  })

  for (const { number, status, meaning } of rows) {
    it(`gives the status of ${number}, and says when it is answered`, () => {
      assert.equal(status, toStatus(number as (typeof errorNumbers)[number]))
      assert.match(meaning, /\w+ \w+/)
    })
  }
})
