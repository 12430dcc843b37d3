import { type Child, element } from '../dom.ts'
import type { Change, ListState, Query } from './list.ts'
import { shorten } from './table.ts'

export const format = new Intl.NumberFormat('en').format

export type ListMessage = ReturnType<typeof describeList>

/** What the page says about the list: above its rows, below them, and in place of them. */
export function describeList(list: ListState, mayWrite: boolean) {
  const { query, rows, hasTop, hasEnd, isLoading } = list
  const isEmpty = rows.length === 0 && hasTop && hasEnd && !isLoading
  return {
    which: [...describeQuery(query), `: ${describeCount(list)}`],
    footer: isEmpty ? '' : describeRows(list),
    empty: isEmpty ? describeEmpty(query, mayWrite) : undefined,
    exported: describeExport(query),
    hasMore: !hasEnd && !isLoading,
    hasTop,
  }
}

const quote = (text: string): Child[] => ['“', element('bdi', shorten(text)), '”']
const describeTag = (tag: string): Child[] => [' with the tag ', ...quote(tag)]

function describeQuery({ name, tag }: Query): Child[] {
  if (name === undefined && tag === undefined) return ['All plants']
  const names = name === undefined ? [] : [' whose name contains ', ...quote(name)]
  return ['Plants', ...(tag === undefined ? [] : describeTag(tag)), ...names]
}

function describeCount({ query, rows, hasTop, hasEnd, isLoading, searched }: ListState): string {
  const count = format(rows.length)
  if (isLoading && query.name !== undefined) {
    return `${count} so far, about ${format(searched)} searched …`
  }
  if (isLoading && rows.length === 0) return '…'
  const counted = hasEnd ? count : `more than ${count}`
  if (hasTop || rows[0] === undefined) return counted
  return `${counted} from id ${rows[0].id} ${query.order === 'asc' ? 'on' : 'down'}`
}

function describeRows({ rows, hasEnd, isLoading }: ListState): string {
  const [first] = rows
  if (first === undefined) return ''
  const range = `Showing ${toPlants(rows.length)}, from id ${first.id} to ${rows.at(-1)?.id}.`
  if (isLoading) return range
  return hasEnd ? `${range} No more follow.` : `${range} More follow.`
}

function describeEmpty({ name, tag }: Query, mayWrite: boolean): { title: string; text: Child[] } {
  if (name !== undefined) {
    const title = `No plant has this name${tag === undefined ? '' : ' and tag'}`
    return { title, text: ['A part of the name is enough, in upper or lower case.'] }
  }
  if (tag !== undefined) {
    const text = 'Tags must match exactly, including upper and lower case.'
    return { title: 'No plant has this tag', text: [text] }
  }
  const start = mayWrite
    ? 'Press “Add plant” to enter the first one, or “Import” to take them from a spreadsheet. '
    : 'New plants appear here. '
  const demo = element('code', 'npx plant-store serve --demo')
  const text = [start, 'To look around with plants that are made up, run ', demo, '.']
  return { title: 'No plants yet', text }
}

function describeExport({ name, tag }: Query): Child[] {
  const which = tag === undefined ? ['Exports all plants'] : ['Exports plants', ...describeTag(tag)]
  return name === undefined ? which : [...which, ', not only those found']
}

export function toPlants(count: number): string {
  return count === 1 ? '1 plant' : `${format(count)} plants`
}

const verbs = {
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
