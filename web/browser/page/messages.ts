import type { Change } from './changes.ts'
import { type ListState, maxRows, type Query } from './plant-list.ts'

export const format = new Intl.NumberFormat('en').format

export type ListMessage = ReturnType<typeof describeList>

/** What the list says about itself below its rows, and in place of them. */
export function describeList(list: ListState) {
  const { query, rows, hasTop, hasEnd, isLoading } = list
  const isEmpty = rows.length === 0 && hasTop && hasEnd && !isLoading
  if (!isEmpty) return { footer: describeRows(list), empty: undefined }
  return { footer: '', empty: describeEmpty(query) }
}

function describeEmpty({ name, tag }: Query) {
  if (name !== undefined) {
    const title = `No plant has this name${tag === undefined ? '' : ' and tag'}`
    return { title, text: 'A part of the name is enough, in upper or lower case.' }
  }
  if (tag === undefined) return { title: 'No plants yet', text: 'New plants appear here.' }
  const text = 'Tags must match exactly, including upper and lower case.'
  return { title: 'No plant has this tag', text }
}

function describeRows({ query, rows, hasTop, hasEnd, isLoading, searched }: ListState): string {
  const found = query.name === undefined ? '' : ' found'
  const what = `${toPlants(rows.length)}${found}${query.tag === undefined ? '' : ' with this tag'}`
  if (hasTop && hasEnd) return what
  if (found !== '' && !hasEnd) {
    if (!isLoading) return `${what} so far. Scroll down to search on.`
    return `${what} so far, searched about ${toPlants(searched)} …`
  }
  const [first] = rows
  if (first === undefined) return hasEnd ? 'Nothing follows. Use “Show earlier”.' : ''
  const range = `Showing ${what}, from id ${first.id} to ${rows.at(-1)?.id}.`
  if (hasEnd) return `${range} No more follow.`
  return rows.length > maxRows
    ? `${range} Use “Go to id” to see others.`
    : `${range} Scroll down for more.`
}

export function toPlants(count: number): string {
  return count === 1 ? '1 plant' : `${format(count)} plants`
}

export const verbs = {
  'plant.created': 'added',
  'plant.replaced': 'changed',
  'plant.deleted': 'deleted',
} as const

/** The changes of others, in one sentence. */
export function describeChanges(changes: readonly Change[]): string {
  const [first] = changes
  if (changes.length === 1 && first !== undefined) {
    return `Somebody has ${verbs[first.type]} plant ${first.plant.id}.`
  }
  const kinds = Map.groupBy(changes, ({ type }) => verbs[type])
  const parts = [...kinds].map(([verb, { length }]) => `${verb} ${toPlants(length)}`)
  return `Others have ${parts.join(', ')}.`
}
