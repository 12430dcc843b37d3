import assert from 'node:assert/strict'
import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { openConnection } from '../../src/store/sqlite/connection.ts'
import { schemaVersion } from '../../src/store/tables.ts'
import { ends, newStore } from '../cli/ends.ts'
import { newFolder } from '../support/folder.ts'
import { openSqliteStore } from '../support/stores.ts'
import { oldJournals, oldStores } from './old-stores.ts'

/** A trigger, and how a sentence names it. */
const refused: [title: string, sql: string, found: string][] = [
  [
    'a trigger that undoes every revocation',
    `CREATE TRIGGER undo AFTER UPDATE OF revoked_at ON Tokens
     BEGIN UPDATE tokens SET revoked_at = NULL WHERE id = new.id; END`,
    'a trigger "undo" on the table "Tokens"',
  ],
  [
    'a trigger whose name is much too long',
    `CREATE TRIGGER "${'x'.repeat(5_000)}" AFTER INSERT ON plants BEGIN SELECT 1; END`,
    `a trigger "${'x'.repeat(100)}" on the table "plants"`,
  ],
]

/** What other programs may keep in the file. */
const left = `
  CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
  CREATE TABLE notes (plant_id INTEGER REFERENCES plants (id), note TEXT);
  INSERT INTO notes VALUES (1, 'kept');
  CREATE INDEX by_name ON plants (name);
  ALTER TABLE tokens ADD COLUMN note TEXT;
  CREATE VIEW shown AS SELECT id, name FROM plants;
  CREATE TRIGGER rename_shown INSTEAD OF UPDATE ON shown BEGIN
    UPDATE plants SET name = new.name WHERE id = old.id;
  END;
  CREATE TRIGGER count_notes AFTER INSERT ON notes BEGIN
    UPDATE _litestream_seq SET seq = seq + 1;
  END;
  ANALYZE`

function change(path: string, sql: string): void {
  using db = new DatabaseSync(path)
  db.exec(sql)
}

/** A backup of a store that holds a plant, in a folder of its own. */
async function newBackup() {
  const folder = await newStore()
  await ends('backup backup.db', 0, /^/, folder)
  return { folder, path: join(folder, 'backup.db') }
}

describe('a file to which somebody has added a trigger', () => {
  for (const [title, sql, found] of refused) {
    it(`is refused with its name: ${title}`, async () => {
      const { folder, path } = await newBackup()
      change(path, sql)
      const said = `backup.db has ${found}. Restore another backup.\n`
      await ends('restore backup.db --database sqlite:new/a.db', 65, said, folder)
      assert.deepEqual(readdirSync(folder), ['backup.db', 'data'])
      const named = new RegExp(
        `^\\S*backup\\.db has ${RegExp.escape(found)}.* and was not opened\\. Restore a backup`,
      )
      await ends('token list --database sqlite:backup.db', 78, named, folder)
      const checked = await ends('check --json --database sqlite:backup.db', 1, /^/, folder)
      const schema = JSON.parse(checked).find(
        ({ subject }: { subject: string }) => subject === 'schema',
      )
      assert.equal(schema.state, 'to do')
      assert.ok(schema.message.includes(found), schema.message)
    })
  }

  it('is not trusted by any connection', () => {
    using db = openConnection(join(newFolder(), 'plants.db'))
    assert.equal(db.prepare('PRAGMA trusted_schema').get()?.trusted_schema, 0n)
  })

  it('is not backed up', async () => {
    const { folder } = await newBackup()
    const trigger = 'CREATE TRIGGER undo AFTER INSERT ON keys BEGIN DELETE FROM tokens; END'
    change(join(folder, 'data/plant-store.db'), trigger)
    const said = /plant-store\.db has a trigger "undo" on the table "keys"/
    await ends('backup other.db', 78, said, folder)
    assert.deepEqual(readdirSync(folder), ['backup.db', 'data'])
  })

  it('is refused before it is brought up to date', async () => {
    const path = join(newFolder(), 'plants.db')
    const old = await oldStores[0]?.newUrl()
    copyFileSync(old?.replace('sqlite:', '') ?? '', path)
    change(path, 'CREATE TRIGGER undo AFTER INSERT ON keys BEGIN DELETE FROM tokens; END')
    assert.throws(() => openConnection(path), /has a trigger "undo"/)
    using db = new DatabaseSync(path)
    assert.ok(Number(db.prepare('PRAGMA user_version').get()?.user_version) < schemaVersion)
  })
})

describe('a file of every release', () => {
  for (const [release, stores] of Object.entries({ '1.0.0': oldStores, '1.1.0': oldJournals })) {
    it(`is restored and opened: ${release}`, async () => {
      const url = (await stores[0]?.newUrl()) ?? ''
      const folder = newFolder()
      const path = url.replace('sqlite:', '')
      await ends(`restore ${path} --database sqlite:new.db`, 0, /^/, folder)
      openConnection(join(folder, 'new.db')).close()
    })
  }

  it('may hold tables, indexes and views of other programs, which stay as they are', async () => {
    const { folder, path } = await newBackup()
    change(path, left)
    const succeed = (line: string) => ends(`${line} --database sqlite:new.db`, 0, /^/, folder)
    await succeed('restore backup.db')
    const store = openSqliteStore(join(folder, 'new.db'))
    await store.createPlant({ id: 2n, name: 'two' })
    // A note refers to it.
    assert.equal(await store.deletePlant(1n, {}), 'deleted')
    await succeed('check')
    await succeed('token create --name x')
    await succeed('backup again.db')
    await store.close()
    using db = new DatabaseSync(join(folder, 'again.db'))
    assert.equal(db.prepare('SELECT note FROM notes').get()?.note, 'kept')
    assert.deepEqual({ ...db.prepare('SELECT * FROM shown').get() }, { id: 2, name: 'two' })
  })
})
