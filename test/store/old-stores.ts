import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { run } from '../support/command.ts'
import { postgres } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import type { TestService } from '../support/service.ts'

/** A store that an older release wrote, and what it must still hold. */
export interface OldStore<Held> {
  readonly name: string
  readonly expected: Held
  /** Makes a copy to open. */
  newUrl(): Promise<string>
}

interface Plants {
  readonly tokens: Readonly<Record<'reader' | 'revoked' | 'expired', string>>
  /** By id. */
  readonly plants: readonly { id: string; etag: string; json: string }[]
}

interface Journal {
  /** The token that made every change, where one made them all. */
  readonly tokenId?: string
  readonly events: readonly { position: string; type: string; plant: string }[]
}

/** What release 1.2.0 held, with two plants that are larger than a body may be today. */
export interface Release12 extends Plants, Journal {
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
  const expected = JSON.parse(text, (_, value) =>
    typeof value === 'string'
      ? value.replace(/<(\d+) x (.)>/gu, (_, count, character) => character.repeat(Number(count)))
      : value,
  )
  return { ...expected, plants: expected.plants?.map(withJson).toSorted(compareIds) }
}

/** Releases before 1.2.0 are expected to hold names and tags. */
function withJson({ id, etag, json, ...content }: Record<string, string>) {
  return { id, etag, json: json ?? `{"id":${id},${JSON.stringify(content).slice(1)}` }
}

function compareIds(one: { id: string }, other: { id: string }): number {
  return BigInt(one.id) < BigInt(other.id) ? -1 : 1
}

/** Sets the times of the changes to now: a service forgets old changes when it starts. */
const renewTimes = (table: string) =>
  `UPDATE ${table} SET at = at + ${Date.now()} - (SELECT max(at) FROM ${table})`

/**
 * The stores of a release, one for each engine, from the files and dumps of this name. Never made
 * anew: people have such stores.
 */
function toStores<Held>(
  name: string,
  { expected = name, hasJournal = true, isPacked = false } = {},
): OldStore<Held>[] {
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

export const oldStores = toStores<Plants>('release-1.0.0', { hasJournal: false })
/** The first release with a journal. */
export const oldJournals = toStores<Journal>('release-1.1.0')
/** Release 1.2.0, with a journal that has reached its bound, and deliveries that wait. */
export const stores12 = toStores<Release12>('release-1.2.0', { isPacked: true })
/** A copy of that one, made by the command `follow` of release 1.2.0. */
export const copies12 = toStores<Release12>('release-1.2.0-copy', {
  expected: 'release-1.2.0',
  isPacked: true,
})

/** Runs statements on a store. On PostgreSQL its tables are in a schema. */
export async function execute(url: string, toSql: (schema: string) => string): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    await query(url, toSql('plant_store.'))
    return
  }
  using db = new DatabaseSync(url.replace('sqlite:', ''))
  db.exec(toSql(''))
}

/** Requires that the check of a store finds nothing. */
export async function assertInOrder(url: string): Promise<void> {
  const { stdout } = await run(['check', '--json', '--database', url], { folder: newFolder() })
  const found: { subject: string; state: string }[] = JSON.parse(stdout)
  const subjects = found.filter(({ state }) => state !== 'ok').map(({ subject }) => subject)
  // The servers of the tests do without fsync.
  assert.deepEqual(subjects, url.startsWith('sqlite:') ? [] : ['syncs'])
}

/** Compares texts of a megabyte without printing them. */
export const digest = (text: string) => createHash('sha256').update(text).digest('hex')

/** Every plant, by following `Link`. */
export async function listAll(service: TestService, query = ''): Promise<string[]> {
  const found: string[] = []
  for (let path: string | undefined = `/plants?limit=1000${query}`; path !== undefined; ) {
    const { status, body, headers } = await service.call({ path })
    assert.equal(status, 200)
    found.push(...body.slice(1, -1).split(/(?<=\}),(?=\{"id":)/))
    path = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1]
  }
  return found.filter((text) => text !== '')
}

/** Requires every plant, as it was, and no other. */
export async function assertHoldsAll(service: TestService, { plants }: Plants): Promise<void> {
  const listed = await listAll(service)
  const expected = plants.map(({ json }) => digest(json))
  assert.deepEqual(listed.map(digest), expected)
}
