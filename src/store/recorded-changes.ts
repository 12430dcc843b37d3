import { buildRecorder, type Recorder } from '../journal/row.ts'
import { apply, type Change, type Outcome, type Rows } from './changes.ts'

/** Applies changes to rows and records their effects for the journal. */
export interface RecordedChanges extends Omit<Recorder, 'record'> {
  apply<One extends Change>(change: One): Outcome<One>
}

export function recordChanges(rows: Rows): RecordedChanges {
  const { record, ...recorder } = buildRecorder()
  let tokenId: string | undefined
  const recordedRows: Rows = {
    ...rows,
    insert(plant) {
      const isInserted = rows.insert(plant)
      if (isInserted) record('c', tokenId, plant)
      return isInserted
    },
    update(plant) {
      rows.update(plant)
      record('r', tokenId, plant)
    },
    delete(plant) {
      rows.delete(plant)
      record('d', tokenId, plant)
    },
  }
  return {
    ...recorder,
    apply(change) {
      tokenId = change.tokenId
      return apply(recordedRows, change)
    },
  }
}
