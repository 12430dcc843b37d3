import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from '../support/folder.ts'
import type { Sent, ServiceNote } from './notes.ts'

/** Has the processes that are started with its environment note what they take and begin, all in one place. */
export function openNotes() {
  const file = join(newFolder(), 'notes')
  const preload = fileURLToPath(new URL('./service-notes.ts', import.meta.url))
  const env = { NOTES_FILE: file, NODE_OPTIONS: `--import ${preload}` }
  const read = (): ServiceNote[] =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { env, read }
}

/** How many requests went each way. */
export interface Account {
  readonly answered: number
  /** Nobody listened: there was no connection. */
  readonly refused: number
  /** No process took the connection before it was reset. */
  readonly neverTaken: number
  /** Without an answer, on a connection that was taken, and never begun. */
  readonly unread: number
  /** Without an answer, and begun. */
  readonly dropped: number
  /** Answered, and yet not in the notes of the service: these would not show the others either. */
  readonly unnoted: number
}

/** Holds what the clients saw against what the services noted. */
export function toAccount(sent: readonly Sent[], notes: readonly ServiceNote[]): Account {
  const begun = new Set<number>()
  const taken = new Map<number, number[]>()
  for (const note of notes) {
    if (note.what === 'begun') begun.add(note.number)
    else if (note.what === 'taken') taken.set(note.port, [...(taken.get(note.port) ?? []), note.at])
  }
  // The system gives the same port again: it is this connection only between its beginning and its end.
  const isTaken = ({ port = 0, openedAt, endedAt }: Sent) =>
    taken.get(port)?.some((at) => openedAt <= at && at <= endedAt) ?? false

  function judge(request: Sent): keyof Account {
    const isBegun = begun.has(request.number)
    if (request.result === 'answered') return isBegun && isTaken(request) ? 'answered' : 'unnoted'
    if (isBegun) return 'dropped'
    if (isTaken(request)) return 'unread'
    if (request.result === 'not sent') return 'refused'
    // What cannot be looked up is no excuse.
    return request.port === undefined ? 'unread' : 'neverTaken'
  }

  const account = { answered: 0, refused: 0, neverTaken: 0, unread: 0, dropped: 0, unnoted: 0 }
  for (const request of sent) account[judge(request)]++
  return account
}
