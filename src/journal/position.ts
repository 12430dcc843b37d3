/** A cursor as text: 1 to 64 of `[A-Za-z0-9_-]`, opaque to clients. */
export type Position = string

/** A point between two changes: after the first `index` changes of the row `seq`. */
export interface Cursor {
  readonly journalId: string
  readonly seq: number
  readonly nonce: number
  readonly index: number
}

export function toPosition(cursor: Cursor): Position {
  return toPositions(cursor)(cursor.index)
}

/** The positions within one row, by index. */
export function toPositions({ journalId, seq, nonce }: Cursor): (index: number) => Position {
  const begin = `${journalId}-${seq.toString(36)}-`
  const end = `-${nonce.toString(36)}`
  return (index) => begin + index.toString(36) + end
}

/** Parses a position; undefined if the text is not one. */
export function toCursor(text: string): Cursor | undefined {
  const [, journalId, ...numbers] = positionForm.exec(text) ?? []
  if (journalId === undefined) return undefined
  const [seq, index, nonce] = numbers.map((part) => parseInt(part, 36)) as [number, number, number]
  return { journalId, seq, index, nonce }
}

/** A key that sorts in journal order, which positions themselves do not. */
export function toOrder(position: Position): string {
  const [, , seq, index] = positionForm.exec(position) ?? []
  return seq === undefined ? position : seq.padStart(10, '0') + index?.padStart(6, '0')
}

const positionForm = /^([0-9a-f]{12})-([0-9a-z]{1,10})-([0-9a-z]{1,6})-([0-9a-z]{1,6})$/
