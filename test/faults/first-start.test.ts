import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { identifyFile } from '../../src/store/sqlite/file.ts'
import { UnusableStore } from '../../src/store/store.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'

const pageBytes = 4096
const sectorBytes = 512

/** The journal of a transaction on an empty file, before the file is written. */
function toJournal(): Buffer {
  const journal = Buffer.alloc(sectorBytes)
  Buffer.from('d9d505f920a163d7', 'hex').copy(journal)
  journal.writeUInt32BE(sectorBytes, 20)
  journal.writeUInt32BE(pageBytes, 24)
  return journal
}

/** The first sector of our database, without the rest of its page. */
function toTornPage(): Buffer {
  const path = join(newFolder(), 'whole.db')
  openConnection(path).close()
  const page = Buffer.alloc(pageBytes)
  readFileSync(path).copy(page, 0, 0, sectorBytes)
  return page
}

describe('a first start that a power cut ended', () => {
  for (const [what, toPage] of Object.entries({
    'the beginning of the file': () => Buffer.alloc(pageBytes),
    'all but the beginning of the file': toTornPage,
  })) {
    it(`is completed by the next start when the cut took ${what}`, async () => {
      const path = join(newFolder(), 'plants.db')
      writeFileSync(path, toPage())
      writeFileSync(`${path}-journal`, toJournal())
      const first = openSqliteStore(path)
      await first.createPlant({ id: 1n, name: 'x' })
      await first.close()
      assert.equal(identifyFile(path), 'ours')
      assert.equal((await openSqliteStore(path).getPlant(1n))?.name, 'x')
    })
  }

  it('is not assumed of a file of zeros without a journal, or with that of another program', () => {
    for (const journal of [undefined, 'the diary of a gardener']) {
      const path = join(newFolder(), 'plants.db')
      writeFileSync(path, Buffer.alloc(pageBytes))
      if (journal !== undefined) writeFileSync(`${path}-journal`, journal)
      assert.throws(() => openConnection(path), UnusableStore)
      assert.deepEqual(readFileSync(path), Buffer.alloc(pageBytes))
      assert.equal(existsSync(`${path}-journal`), journal !== undefined)
    }
  })
})
