/** Names a place in the journal: 1 to 64 of `[A-Za-z0-9_-]`, opaque to clients. */
export type Position = string

/** A place in the journal: how many changes of the row with this number come before it. */
export interface Place {
  readonly life: string
  readonly seq: number
  readonly nonce: number
  readonly done: number
}

/** A place as readers name it. */
export function toPosition(place: Place): Position {
  return toPositions(place)(place.done)
}

/** Names the places of one row. */
export function toPositions({ life, seq, nonce }: Place): (done: number) => Position {
  const begin = `${life}-${seq.toString(36)}-`
  const end = `-${nonce.toString(36)}`
  return (done) => begin + done.toString(36) + end
}

/** Reads a position; undefined when the text is none. */
export function toPlace(text: string): Place | undefined {
  const [, life = '', seq = '', done = '', nonce = ''] = positionForm.exec(text) ?? []
  if (life === '') return undefined
  const [seqNumber, doneNumber, nonceNumber] = [seq, done, nonce].map((part) => parseInt(part, 36))
  return {
    life,
    seq: seqNumber as number,
    done: doneNumber as number,
    nonce: nonceNumber as number,
  }
}

/** A text that sorts as the positions of one store do. They have no such order themselves. */
export function toOrder(position: Position): string {
  const [, , seq, done] = positionForm.exec(position) ?? []
  return seq === undefined ? position : seq.padStart(10, '0') + done?.padStart(6, '0')
}

const positionForm = /^([0-9a-f]{12})-([0-9a-z]{1,10})-([0-9a-z]{1,6})-([0-9a-z]{1,6})$/

/** Whether a place is in the row that ends here, and not in one that had its number before. */
export function isReached(place: Place, end: Place): boolean {
  return place.seq === end.seq && place.nonce === end.nonce && place.done <= end.done
}
