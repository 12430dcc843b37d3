import type { PlantQuery, VersionedPlant } from '../store.ts'
import type { Sql } from './pools.ts'
import { withTimeout } from './timeout.ts'

/** How many bytes of rows are made into plants at once. */
const pieceBytes = 64 * 1024

/**
 * Every plant that the query finds, as one answer of the server, which waits while nobody takes more. A COPY costs less
 * than rows by far, and needs no bound on a page: it holds no more than a piece, or one plant.
 */
export async function* walkPlants(
  sql: Sql,
  query: PlantQuery,
  { answerTimeoutMs, isLost }: { answerTimeoutMs: number; isLost: () => boolean },
): AsyncGenerator<VersionedPlant[]> {
  // A COPY takes no parameters: the text of a client goes beside it, never into it.
  if (query.tag !== undefined) {
    const noted = sql`SELECT set_config(${tagSetting}, ${query.tag}, TRUE)`
    await withTimeout(noted, answerTimeoutMs)
  }
  const copy = sql.unsafe(`COPY (${toSelect(query)}) TO STDOUT`)
  const rows = await withTimeout(copy.readable(), answerTimeoutMs)
  const giveUp = () => rows.destroy(Object.assign(new Error('no answer'), { code: 'TIMEOUT' }))
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
    // The driver stops reading when the stream is full, and would not go on when it has ended meanwhile.
    if (!isLost()) rows._read(0)
  }
}

const tagSetting = 'plant_store.tag'

function toSelect({ after, tag, limit }: PlantQuery): string {
  const conditions = [
    ...(after === undefined ? [] : [`id > ${after}`]),
    ...(tag === undefined ? [] : [`hashtextextended(tag, 0) = hashtextextended(${soughtTag}, 0)`]),
    ...(tag === undefined ? [] : [`tag = ${soughtTag}`]),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const bound = Number.isFinite(limit) ? `LIMIT ${limit}` : ''
  return `SELECT id, name, tag, version FROM plant_store.plants ${where} ORDER BY id ${bound}`
}

const soughtTag = `current_setting('${tagSetting}')`

/** Rows of COPY's text format: one a line, tabs between the columns, `\N` for what is absent. */
function toPlants(bytes: Buffer): VersionedPlant[] {
  const text = bytes.toString()
  const plants: VersionedPlant[] = []
  // By places in the whole text: to split each line would take half as long again.
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
