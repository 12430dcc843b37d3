import type { PlantQuery, VersionedPlant } from '../store.ts'
import type { Sql } from './pools.ts'
import { timedOut, withTimeout } from './timeout.ts'

/** How many bytes of rows become plants at once. */
const pieceBytes = 64 * 1024

/**
 * Every plant that the query finds, from one COPY, which costs far less than rows. The server waits
 * until the caller reads on, so the service holds one piece at a time, or one plant.
 */
export async function* walkPlants(
  sql: Sql,
  query: PlantQuery,
  { answerTimeoutMs, isLost }: { answerTimeoutMs: number; isLost: () => boolean },
): AsyncGenerator<VersionedPlant[]> {
  // A COPY takes no parameters: the text of a client goes into a setting, never into the statement.
  if (query.tag !== undefined) {
    const noted = sql`SELECT pg_catalog.set_config(${tagSetting}, ${query.tag}, TRUE)`
    await withTimeout(noted, answerTimeoutMs)
  }
  const copy = sql.unsafe(`COPY (${toSelect(query)}) TO STDOUT`)
  const rows = await withTimeout(copy.readable(), answerTimeoutMs)
  const giveUp = () => rows.destroy(timedOut(answerTimeoutMs))
  let timer = setTimeout(giveUp, answerTimeoutMs)
  let chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of rows) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes < pieceBytes) continue
      clearTimeout(timer)
      yield toPlants(Buffer.concat(chunks))
      chunks = []
      bytes = 0
      timer = setTimeout(giveUp, answerTimeoutMs)
    }
    if (bytes > 0) yield toPlants(Buffer.concat(chunks))
  } finally {
    clearTimeout(timer)
    // The driver pauses the socket while the stream is full, and does not resume it after the end.
    if (!isLost()) rows._read(0)
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
function toPlants(bytes: Buffer): VersionedPlant[] {
  const text = bytes.toString()
  const plants: VersionedPlant[] = []
  // By places in the whole text: splitting each line would take half as long again.
  for (let start = 0; start < text.length; ) {
    const nameAt = text.indexOf('\t', start) + 1
    const tagAt = text.indexOf('\t', nameAt) + 1
    const versionAt = text.indexOf('\t', tagAt) + 1
    const end = text.indexOf('\n', versionAt)
    const id = BigInt(text.slice(start, nameAt - 1))
    const name = toText(text.slice(nameAt, tagAt - 1))
    const tag = text.slice(tagAt, versionAt - 1)
    const version = BigInt(text.slice(versionAt, end))
    plants.push(tag === '\\N' ? { id, name, version } : { id, name, tag: toText(tag), version })
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

function toText(text: string): string {
  if (!text.includes('\\')) return text
  return text.replaceAll(/\\(.)/g, (_, character: string) => characters[character] ?? character)
}
