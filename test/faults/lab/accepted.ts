import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from '../../support/folder.ts'
import type { Sent, ServiceNote } from './notes.ts'

/** Makes an environment in which services note the connections and requests that they begin. */
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

/** How many requests had each outcome. */
export interface Account {
  readonly answered: number
  /** No service listened: there was no connection. */
  readonly refused: number
  /** The connection was reset before a service accepted it. */
  readonly neverAccepted: number
  /** Without an answer, over an accepted connection, and never begun. */
  readonly unread: number
  /** Without an answer, though it was begun. */
  readonly dropped: number
  /** Answered, but missing in the notes, which are not to be trusted then. */
  readonly unnoted: number
}

/** Compares what the clients saw with what the services noted. */
export function toAccount(sent: readonly Sent[], notes: readonly ServiceNote[]): Account {
  const begun = new Set<number>()
  const accepted = new Map<number, number[]>()
  for (const note of notes) {
    if (note.what === 'begun') begun.add(note.number)
    else if (note.what === 'accepted')
      accepted.set(note.port, [...(accepted.get(note.port) ?? []), note.at])
  }
  // The system reuses ports: a note is about this connection only while it was open.
  const isAccepted = ({ port = 0, openedAt, endedAt }: Sent) =>
    accepted.get(port)?.some((at) => openedAt <= at && at <= endedAt) ?? false

  function judge(request: Sent): keyof Account {
    const isBegun = begun.has(request.number)
    if (request.result === 'answered')
      return isBegun && isAccepted(request) ? 'answered' : 'unnoted'
    if (isBegun) return 'dropped'
    if (isAccepted(request)) return 'unread'
    if (request.result === 'not sent') return 'refused'
    // A request whose connection is unknown counts as the service's fault.
    return request.port === undefined ? 'unread' : 'neverAccepted'
  }

  const account = { answered: 0, refused: 0, neverAccepted: 0, unread: 0, dropped: 0, unnoted: 0 }
  for (const request of sent) account[judge(request)]++
  return account
}
