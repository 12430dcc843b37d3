import type { ServerResponse } from 'node:http'
import { limits } from '../contract/limits.ts'
import { breakOff } from './node/connection.ts'

/** The memory of each answer of this process that is not read, the longest unread first. */
const unread = new Map<ServerResponse, number>()
let unreadBytes = 0

/**
 * Counts the memory that an answer takes until its client has read it. Beyond the bound over all
 * connections, the clients that have not read for the longest time are cut, down to half of it.
 */
export function countUnread(response: ServerResponse, bytes: number): void {
  if (!unread.has(response)) response.once('close', () => setUnread(response, 0))
  setUnread(response, bytes)
  if (unreadBytes <= limits.unreadBytes) return
  for (const longest of unread.keys()) {
    if (unreadBytes <= limits.unreadBytes / 2) return
    setUnread(longest, 0)
    breakOff(longest.req.socket)
  }
}

function setUnread(response: ServerResponse, bytes: number): void {
  unreadBytes += bytes - (unread.get(response) ?? 0)
  if (bytes === 0) unread.delete(response)
  else unread.set(response, bytes)
}
