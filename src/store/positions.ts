import type { Position } from './journal-events.ts'

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

const positionForm = /^([0-9a-f]{12})-([0-9a-z]{1,10})-([0-9a-z]{1,6})-([0-9a-z]{1,6})$/
