import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
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

/** What release 1.2.0 held, with two plants that are larger than a body may be today. */
export interface Release12 {
  readonly tokens: Readonly<Record<'reader' | 'writer' | 'revoked' | 'expired', string>>
  readonly plants: readonly { id: string; etag: string; json: string }[]
  readonly events: readonly { position: string; type: string; plant: string }[]
  /** The position after the last change. */
  readonly end: string
  readonly receivers: readonly { id: string; url: string; state: string; position: string }[]
  readonly secrets: Readonly<Record<'active' | 'paused', string>>
}

const toPath = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))
const readFixture = (name: string) => readFileSync(toPath(name))

/** The file of release 1.0.0 on SQLite. */
export const oldFile = toPath('release-1.0.0-sqlite.db')

/** Long runs of one character stand as `<COUNT x CHARACTER>` in what is expected. */
function readExpected(name: string) {
  const text = readFixture(name).toString()
  return JSON.parse(text, (_, value) =>
    typeof value === 'string'
      ? value.replace(/<(\d+) x (.)>/gu, (_, count, character) => character.repeat(Number(count)))
      : value,
  )
}

/** Sets the times of the changes to now: a service forgets old changes when it starts. */
const renewTimes = (table: string) =>
  `UPDATE ${table} SET at = at + ${Date.now()} - (SELECT max(at) FROM ${table})`

interface Fixture {
  /** The name of the file or dump, without the engine. */
  readonly name: string
  /** The name of the file with what it must hold. */
  readonly expected: string
  readonly hasJournal: boolean
  readonly isPacked: boolean
}

/** The stores of a release, one for each engine. Never made anew: people have such stores. */
function toStores<Held>({ name, expected, hasJournal, isPacked }: Fixture): OldStore<Held>[] {
  const read = (file: string) =>
    isPacked ? gunzipSync(readFixture(`${file}.gz`)) : readFixture(file)
  return [
    {
      name: 'SQLite',
      expected: readExpected(`${expected}-sqlite.json`),
      async newUrl() {
        const path = join(newFolder(), 'plants.db')
        writeFileSync(path, read(`${name}-sqlite.db`), { mode: 0o600 })
        using db = new DatabaseSync(path)
        if (hasJournal) db.exec(renewTimes('journal'))
        return `sqlite:${path}`
      },
    },
    {
      name: 'PostgreSQL',
      expected: readExpected(`${expected}-postgres.json`),
      async newUrl() {
        const url = await postgres.newUrl()
        await query(url, read(`${name}-postgres.dump`).toString())
        if (hasJournal) await query(url, renewTimes('plant_store.journal'))
        return url
      },
    },
  ]
}

const toFixture = (name: string, hasJournal: boolean): Fixture => ({
  name,
  expected: name,
  hasJournal,
  isPacked: false,
})

export const oldStores = toStores<Plants>(toFixture('release-1.0.0', false))
/** The first release with a journal. */
export const oldJournals = toStores<Journal>(toFixture('release-1.1.0', true))
/** Release 1.2.0, with a journal that has reached its bound, and deliveries that wait. */
export const stores12 = toStores<Release12>({
  ...toFixture('release-1.2.0', true),
  isPacked: true,
})
/** A copy of that one, made by the command `follow` of release 1.2.0. */
export const copies12 = toStores<Release12>({
  ...toFixture('release-1.2.0', true),
  name: 'release-1.2.0-copy',
  isPacked: true,
})
