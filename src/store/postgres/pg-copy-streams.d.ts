declare module 'pg-copy-streams' {
  import type { Readable } from 'node:stream'
  import type { Submittable } from 'pg'
  /** A query for COPY … TO STDOUT, and the stream of its rows as the server writes them. */
  export function to(text: string): Readable & Submittable
}
