import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'

/** A store that release 1.0.0 wrote, and all that it must still hold. */
export interface OldStore {
  readonly name: string
  readonly expected: Expected
  /** Makes a copy to open. */
  newUrl(): Promise<string>
}

interface Expected {
  readonly keys: number
  readonly tokens: Readonly<Record<'reader' | 'revoked' | 'expired', string>>
  readonly plants: readonly { id: string; name: string; tag?: string; etag: string }[]
}

const toPath = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))
const read = (name: string) => readFileSync(toPath(name), 'utf8')

/** The file of release 1.0.0 on SQLite. */
export const oldFile = toPath('release-1.0.0-sqlite.db')

/** One for each engine. Never made anew: they stand for the stores that people have. */
export const oldStores: readonly OldStore[] = [
  {
    name: 'SQLite',
    expected: JSON.parse(read('release-1.0.0-sqlite.json')),
    async newUrl() {
      const path = join(newFolder(), 'plants.db')
      copyFileSync(oldFile, path)
      return `sqlite:${path}`
    },
  },
  {
    name: 'PostgreSQL',
    expected: JSON.parse(read('release-1.0.0-postgres.json')),
    async newUrl() {
      const postgresql = engines.find(({ name }) => name === 'PostgreSQL')
      const url = (await postgresql?.newUrl()) ?? ''
      await query(url, read('release-1.0.0-postgres.dump'))
      return url
    },
  },
]
