import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'

/** A store that an older release wrote, and what it must still hold. */
export interface OldStore<Held> {
  readonly name: string
  readonly expected: Held
  /** Makes a copy to open. */
  newUrl(): Promise<string>
}

interface Plants {
  readonly keys: number
  readonly tokens: Readonly<Record<'reader' | 'revoked' | 'expired', string>>
  readonly plants: readonly { id: string; name: string; tag?: string; etag: string }[]
}

interface Journal {
  readonly tokenId: string
  readonly events: readonly { position: string; type: string; plant: string }[]
}

const toPath = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))
const read = (name: string) => readFileSync(toPath(name), 'utf8')

/** The file of release 1.0.0 on SQLite. */
export const oldFile = toPath('release-1.0.0-sqlite.db')

/** The stores of a release, one for each engine. Never made anew: people have such stores. */
function toStores<Held>(release: string): OldStore<Held>[] {
  return [
    {
      name: 'SQLite',
      expected: JSON.parse(read(`${release}-sqlite.json`)),
      async newUrl() {
        const path = join(newFolder(), 'plants.db')
        copyFileSync(toPath(`${release}-sqlite.db`), path)
        return `sqlite:${path}`
      },
    },
    {
      name: 'PostgreSQL',
      expected: JSON.parse(read(`${release}-postgres.json`)),
      async newUrl() {
        const url = await postgres.newUrl()
        await query(url, read(`${release}-postgres.dump`))
        return url
      },
    },
  ]
}

export const oldStores = toStores<Plants>('release-1.0.0')
/** The first release with a journal. */
export const oldJournals = toStores<Journal>('release-1.1.0')
