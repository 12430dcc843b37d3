import type { StoredPlant } from '../contract/shapes.ts'
import { type Place, toPositions } from './positions.ts'
import { type JournalEvent, pageBytes } from './store.ts'

const types = { c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' } as const

export type Kind = keyof typeof types

/** The changes of a row, column by column. One kind, token or tag alone is that of all. */
export interface Columns {
  readonly kinds: Kind[]
  readonly tokenIds: string[]
  readonly ids: (number | string)[]
  readonly names: string[]
  readonly tags: (string | null)[]
}

export function newColumns(): Columns {
  return { kinds: [], tokenIds: [], ids: [], names: [], tags: [] }
}

export function note(
  { kinds, tokenIds, ids, names, tags }: Columns,
  kind: Kind,
  tokenId: string | undefined,
  { id, name, tag }: StoredPlant,
): void {
  const count = ids.length
  add(kinds, kind, count)
  add(tokenIds, tokenId ?? '', count)
  add(tags, tag ?? null, count)
  names.push(name)
  // A number is sooner written than a text, but is exact only up to 2^53.
  const number = Number(id)
  ids.push(Number.isSafeInteger(number) ? number : String(id))
}

/** Adds to a column that stands for this many changes. */
function add<Value>(column: Value[], value: Value, count: number): void {
  if (column.length === 1 && column[0] === value) return
  while (column.length < count) column.push(column[0] as Value)
  column.push(value)
}

/** The text of a row, made in one call: further ones cost more than what they write. */
export function toText({ kinds, tokenIds, ids, names, tags }: Columns): string {
  return JSON.stringify({ k: kinds, t: tokenIds, i: ids, n: names, g: tags })
}

/** A page that is being read, and how much room it has left. */
export interface Reading {
  readonly events: JournalEvent[]
  readonly limit: number
  bytes: number
}

/** Adds the changes of a row after a place. Returns whether there was room for all of them. */
export function readText(changes: string, at: number, from: Place, reading: Reading): boolean {
  const { events, limit } = reading
  const toName = toPositions(from)
  const { text, kinds, tokens, ...starts } = findColumns(changes)
  let { idAt, nameAt, tagAt } = starts
  for (let done = 1; idAt < starts.idsEnd; done++) {
    // There is always another comma: the next column comes after one.
    const idEnd = Math.min(text.indexOf(',', idAt), starts.idsEnd)
    const nameEnd = findTextEnd(text, nameAt + 1) + 1
    const hasTag = text[tagAt] === '"'
    const tagEnd = hasTag ? findTextEnd(text, tagAt + 1) + 1 : tagAt + 'null'.length
    if (done > from.done) {
      reading.bytes += idEnd - idAt + nameEnd - nameAt + tagEnd - tagAt
      // There is always room for one.
      const isFull = events.length === limit || reading.bytes > pageBytes
      if (isFull && events.length > 0) return false
      const id = text[idAt] === '"' ? text.slice(idAt + 1, idEnd - 1) : text.slice(idAt, idEnd)
      const tagMember = hasTag ? `,"tag":${text.slice(tagAt, tagEnd)}` : ''
      events.push({
        position: toName(done),
        type: types[(kinds[done - 1] ?? kinds[0]) as Kind],
        at,
        plantJson: `{"id":${id},"name":${text.slice(nameAt, nameEnd)}${tagMember}}`,
        tokenId: (tokens[done - 1] ?? tokens[0]) || undefined,
      })
    }
    idAt = idEnd + 1
    nameAt = nameEnd + 1
    if (text[tagEnd] === ',') tagAt = tagEnd + 1
  }
  return true
}

/**
 * Where the columns of a row begin. No text in them can be taken for a name of a column: its
 * quotes are escaped, and no colon follows its end.
 */
function findColumns(changes: string) {
  const text = changes.startsWith('{') ? changes : toJson(changes)
  const kindsAt = '{"k":'.length
  const kindsEnd = find(text, ',"t":[', kindsAt)
  const tokensAt = kindsEnd + ',"t":'.length
  const tokensEnd = find(text, ',"i":[', tokensAt)
  const idAt = tokensEnd + ',"i":['.length
  const idsEnd = find(text, '],"n":[', idAt)
  const nameAt = idsEnd + '],"n":['.length
  const tagAt = find(text, '],"g":[', nameAt) + '],"g":['.length
  const kinds: string[] = JSON.parse(text.slice(kindsAt, kindsEnd))
  const tokens: string[] = JSON.parse(text.slice(tokensAt, tokensEnd))
  return { text, kinds, tokens, idAt, idsEnd, nameAt, tagAt }
}

/** The JSON of a row of release 1.1.0: a line for each change, with tabs between its parts. */
function toJson(lines: string): string {
  const changes = lines.split('\n').map((line) => line.split('\t'))
  const toColumn = (part: number) => changes.map((change) => change[part] ?? 'null')
  const [kinds, tokens] = [JSON.stringify(toColumn(0)), JSON.stringify(toColumn(1))]
  const columns = `"i":[${toColumn(2)}],"n":[${toColumn(3)}],"g":[${toColumn(4)}]`
  return `{"k":${kinds},"t":${tokens},${columns}}`
}

function find(text: string, sought: string, from: number): number {
  const at = text.indexOf(sought, from)
  if (at === -1) throw new Error('A row of the journal is damaged.')
  return at
}

/** Finds the quote that ends a text of JSON: an even number of backslashes is before it. */
function findTextEnd(json: string, start: number): number {
  for (let end = json.indexOf('"', start); end !== -1; end = json.indexOf('"', end + 1)) {
    let escapes = end
    while (json[escapes - 1] === '\\') escapes--
    if ((end - escapes) % 2 === 0) return end
  }
  throw new Error('A row of the journal is damaged.')
}
