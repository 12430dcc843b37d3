import type { StoredPlant } from '../contract/shapes.ts'
import { type Place, toPositions } from './positions.ts'
import { type JournalEvent, pageBytes } from './store.ts'

const types = { c: 'plant.created', r: 'plant.replaced', d: 'plant.deleted' } as const

/** The changes of a commit, column by column. */
export interface Columns {
  readonly kinds: (keyof typeof types)[]
  readonly tokenIds: string[]
  readonly ids: bigint[]
  readonly names: string[]
  readonly tags: (string | null)[]
}

export function newColumns(): Columns {
  return { kinds: [], tokenIds: [], ids: [], names: [], tags: [] }
}

export function note(
  columns: Columns,
  kind: keyof typeof types,
  tokenId: string | undefined,
  { id, name, tag }: StoredPlant,
): void {
  columns.kinds.push(kind)
  columns.tokenIds.push(tokenId ?? '')
  columns.ids.push(id)
  columns.names.push(name)
  columns.tags.push(tag ?? null)
}

/**
 * The text of a row: an object with the kinds, tokens, ids, names and tags. Columns of texts take
 * half as long to write as texts one by one.
 */
export function toText({ kinds, tokenIds, ids, names, tags }: Columns): string {
  const tokens = JSON.stringify(toFewest(tokenIds))
  const [nameTexts, tagTexts] = [JSON.stringify(names), JSON.stringify(tags)]
  return joinColumns(toFewest(kinds), tokens, ids, nameTexts, tagTexts)
}

/** Tokens, names and tags are arrays in JSON already. */
function joinColumns(
  kinds: readonly string[],
  tokens: string,
  ids: readonly (bigint | string)[],
  names: string,
  tags: string,
): string {
  return `{"k":"${kinds.join('')}","t":${tokens},"i":[${ids.join(',')}],"n":${names},"g":${tags}}`
}

/** The first value alone, if all are the same: it stands for all of them then. */
export function toFewest<Value>(values: readonly Value[]): readonly Value[] {
  const [first] = values
  return values.every((value) => value === first) ? values.slice(0, 1) : values
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
      const tagMember = hasTag ? `,"tag":${text.slice(tagAt, tagEnd)}` : ''
      const members = `"id":${text.slice(idAt, idEnd)},"name":${text.slice(nameAt, nameEnd)}`
      events.push({
        position: toName(done),
        type: types[(kinds[done - 1] ?? kinds) as keyof typeof types],
        at,
        plantJson: `{${members}${tagMember}}`,
        tokenId: (tokens[done - 1] ?? tokens[0]) || undefined,
      })
    }
    idAt = idEnd + 1
    nameAt = nameEnd + 1
    tagAt = tagEnd + 1
  }
  return true
}

/**
 * Where the columns of a row begin. No text in them can be taken for a name of a column: its
 * quotes are escaped, and no colon follows its end.
 */
function findColumns(changes: string) {
  const text = changes.startsWith('{') ? changes : toJson(changes)
  const kindsAt = '{"k":"'.length
  const kindsEnd = text.indexOf('"', kindsAt)
  const tokensAt = kindsEnd + '","t":'.length
  const tokensEnd = find(text, '],"i":[', tokensAt)
  const idAt = tokensEnd + '],"i":['.length
  const idsEnd = find(text, '],"n":[', idAt)
  const nameAt = idsEnd + '],"n":['.length
  const tagAt = find(text, '],"g":[', nameAt) + '],"g":['.length
  const tokens: string[] = JSON.parse(text.slice(tokensAt, tokensEnd + 1))
  return { text, kinds: text.slice(kindsAt, kindsEnd), tokens, idAt, idsEnd, nameAt, tagAt }
}

/** The JSON of a row of release 1.1.0: a line for each change, with tabs between its parts. */
function toJson(lines: string): string {
  const changes = lines.split('\n').map((line) => line.split('\t'))
  const toColumn = (part: number) => changes.map((change) => change[part] ?? 'null')
  const tokens = JSON.stringify(toColumn(1))
  return joinColumns(toColumn(0), tokens, toColumn(2), `[${toColumn(3)}]`, `[${toColumn(4)}]`)
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
