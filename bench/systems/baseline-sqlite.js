/** The baseline on SQLite: one synced commit per request. */
import { DatabaseSync } from 'node:sqlite'
import { serveBaseline } from './baseline-app.js'

const uniqueViolation = 1_555

const [path = ''] = process.argv.slice(2)
const db = new DatabaseSync(path)
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)')
const insert = db.prepare('INSERT INTO plants (id, name, tag) VALUES (?, ?, ?)')
const find = db.prepare('SELECT id, name, tag FROM plants WHERE id = ?')
const list = db.prepare('SELECT id, name, tag FROM plants WHERE id > ? ORDER BY id LIMIT ?')

await serveBaseline({
  insert({ id, name, tag = null }) {
    try {
      insert.run(id, name, tag)
      return true
    } catch (error) {
      if (error.errcode === uniqueViolation) return false
      throw error
    }
  },
  find: (id) => find.get(id),
  list: (after, limit) => list.all(after, limit),
})
