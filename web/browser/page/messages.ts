import type { Change } from './changes.ts'
import type { ListState } from './plant-list.ts'

const count = new Intl.NumberFormat('en')

/** What the list says about itself below its rows, and in place of them. */
export interface ListMessage {
  /** Whether no rows lie before those that are shown. */
  readonly hasTop: boolean
  readonly footer: string
  readonly empty: { readonly title: string; readonly text: string } | undefined
}

export function describeList({
  count: rows,
  hasTop,
  isWhole,
  isLoading,
  tag,
}: ListState): ListMessage {
  const isEmpty = rows === 0 && isWhole && !isLoading
  const whole = tag === undefined ? toPlants(rows) : `${toPlants(rows)} with this tag`
  const footer = isWhole ? whole : 'Loading…'
  if (!isEmpty) return { hasTop, footer, empty: undefined }
  return {
    hasTop,
    footer: '',
    empty:
      tag === undefined
        ? { title: 'No plants yet', text: 'Add one, or import a file.' }
        : { title: 'No plant has this tag', text: 'Tags are compared letter by letter.' },
  }
}

function toPlants(rows: number): string {
  return rows === 1 ? '1 plant' : `${count.format(rows)} plants`
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
