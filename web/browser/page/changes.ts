import type { PlantEvent, StoredPlant } from '../../../client/index.ts'
import type { Rows } from './rows.ts'
import type { Table } from './table.ts'

/** A change of a plant. */
export type Change = Pick<PlantEvent, 'type' | 'plant'>

interface Target {
  readonly rows: Rows
  readonly table: Table
  isListed(plant: StoredPlant): boolean
}

/**
 * Applies changes, oldest first, to the loaded rows. Visible rows stay in place. Returns those
 * that had an effect.
 */
export function applyChanges(
  changes: readonly Change[],
  { rows, table, isListed }: Target,
): readonly Change[] {
  const seen: Change[] = []
  const firstVisible = table.firstVisible()
  let shiftedBy = 0
  for (const change of changes) {
    const { type, plant } = change
    const index = rows.indexOf(plant.id)
    const count = rows.all().length
    const isGone = type === 'plant.deleted' || !isListed(plant)
    const isSeen = isGone ? rows.remove(plant.id) : rows.put(plant)
    if (isSeen) seen.push(change)
    if (index < firstVisible + shiftedBy) shiftedBy += rows.all().length - count
  }
  if (seen.length > 0) table.update()
  table.shift(firstVisible > 0 ? shiftedBy : 0)
  return seen
}

/** A bound on the remembered changes: without a stream, nothing removes them. */
const maxOwn = 1_000

/** Remembers own changes, so that their events are not announced as news. */
export function buildOwnChanges() {
  const keys = new Set<string>()
  const toKey = ({ type, plant: { id, name, tag } }: Change) =>
    JSON.stringify([type, String(id), name, tag])

  return {
    note: (change: Change): void => {
      if (keys.size > maxOwn) keys.clear()
      keys.add(toKey(change))
    },
    /** Whether an event tells of an own change. Each is expected once. */
    isOwn: (change: Change): boolean => keys.delete(toKey(change)),
  }
}
