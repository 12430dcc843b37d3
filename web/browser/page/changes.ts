import type { PlantEvent } from '../../../client/index.ts'
import type { Plant, Rows } from './rows.ts'
import type { Table } from './table.ts'

/** A change of a plant. */
export type Change = Pick<PlantEvent, 'type' | 'plant'>

interface Target {
  readonly rows: Rows
  readonly table: Table
  isListed(plant: Plant): boolean
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
    const isGone = type === 'plant.deleted' || !isListed(plant)
    const effect = isGone ? rows.remove(plant.id) && 'removed' : rows.put(plant)
    if (effect === false || effect === 'outside' || effect === 'same') continue
    seen.push(change)
    if (index >= firstVisible + shiftedBy) continue
    if (effect === 'inserted') shiftedBy++
    if (effect === 'removed') shiftedBy--
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
