import { unreachable } from '../failures.ts'
import type { PlantQuery, Snapshot, VersionedPlant } from '../store.ts'
import { listTokens } from '../token-steps.ts'
import { Lost, toReadFailure, withTimeout } from './failures.ts'
import { countPlants } from './pages.ts'
import type { Session } from './session.ts'
import { runSteps } from './steps.ts'

/**
 * Opens a transaction on a dedicated connection, which sees the store as of its first statement. If
 * an answer is late, the connection is destroyed and the snapshot fails.
 */
export async function openSnapshot(session: Session, answerTimeoutMs: number): Promise<Snapshot> {
  const connection = await session.openDedicated().catch((error) => {
    throw toReadFailure(error)
  })
  const { sql } = connection

  async function read<Value>(statement: Promise<Value>): Promise<Value> {
    try {
      return await statement
    } catch (error) {
      if (error instanceof Lost) connection.destroy()
      throw toReadFailure(error)
    }
  }

  const readSoon = <Value>(statement: Promise<Value>) =>
    read(withTimeout(statement, answerTimeoutMs))

  /**
   * Reads all matching plants with one COPY, which costs far less than rows. The server waits while
   * the caller does not read.
   */
  async function* walkPlants(query: PlantQuery): AsyncGenerator<VersionedPlant[]> {
    // COPY has no parameters, so the tag goes into a setting, never into the statement.
    const { tag } = query
    if (tag !== undefined) {
      await readSoon(sql`SELECT pg_catalog.set_config(${tagSetting}, ${tag}, TRUE)`)
    }
    const rows = connection.copy(`COPY (${toSelect(query)}) TO STDOUT`).setEncoding('utf8')
    const pieces: AsyncIterator<string> = rows[Symbol.asyncIterator]()
    let rest = ''
    let isDone = false
    try {
      for (;;) {
        const { value, done } = await withTimeout(pieces.next(), answerTimeoutMs)
        isDone = done === true
        if (isDone) return
        const text = rest + value
        const end = text.lastIndexOf('\n') + 1
        rest = text.slice(end)
        if (end > 0) yield toPlants(text.slice(0, end))
      }
    } catch (error) {
      throw unreachable(error)
    } finally {
      if (!isDone) connection.destroy()
    }
  }

  try {
    await readSoon(sql`BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
    // The caller bounds the time of an export. Which of these there are depends on the server.
    await readSoon(sql`SELECT pg_catalog.set_config(name, '0', TRUE) FROM pg_catalog.pg_settings
      WHERE name IN ('statement_timeout', 'transaction_timeout')`)
    await readSoon(sql`SELECT FROM plant_store.plants LIMIT 1`)
  } catch (error) {
    connection.destroy()
    throw error
  }
  return {
    countPlants: (tag) => read(countPlants(sql, tag)),
    walkPlants,
    listTokens: () => readSoon(runSteps(sql, listTokens())),
    close: () => connection.end(0),
  }
}

const tagSetting = 'plant_store.tag'

function toSelect({ after, tag, limit }: PlantQuery): string {
  const conditions = [
    ...(after === undefined ? [] : [`id > '${after}'::bigint`]),
    ...(tag === undefined ? [] : [`plant_store.tag_key(tag) = plant_store.tag_key(${soughtTag})`]),
    ...(tag === undefined ? [] : ['tag IS NOT NULL']),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const bound = Number.isFinite(limit) ? `LIMIT ${limit}` : ''
  return `SELECT id, name, tag, version FROM plant_store.plants ${where} ORDER BY id ${bound}`
}

const soughtTag = `pg_catalog.current_setting('${tagSetting}')`

/** Reads COPY's text format: a row on each line, tabs between the columns, `\N` for NULL. */
function toPlants(text: string): VersionedPlant[] {
  const plants: VersionedPlant[] = []
  // Uses indexes into the whole text: splitting each line would take half as long again.
  for (let start = 0; start < text.length; ) {
    const nameAt = text.indexOf('\t', start) + 1
    const tagAt = text.indexOf('\t', nameAt) + 1
    const versionAt = text.indexOf('\t', tagAt) + 1
    const end = text.indexOf('\n', versionAt)
    const id = BigInt(text.slice(start, nameAt - 1))
    const name = decode(text.slice(nameAt, tagAt - 1))
    const tag = text.slice(tagAt, versionAt - 1)
    const version = BigInt(text.slice(versionAt, end))
    plants.push(tag === '\\N' ? { id, name, version } : { id, name, tag: decode(tag), version })
    start = end + 1
  }
  return plants
}

const characters: Record<string, string> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

function decode(text: string): string {
  if (!text.includes('\\')) return text
  return text.replaceAll(/\\(.)/g, (_, character: string) => characters[character] ?? character)
}
