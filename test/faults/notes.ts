/** The header that tells the requests of a client apart, in the notes of both sides. */
export const numberHeader = 'x-number'

/** One request as its client saw it. */
export interface Sent {
  readonly number: number
  readonly result: 'answered' | 'not sent' | 'not answered'
  /** Of the client's end of the connection. */
  readonly port: number | undefined
  /** When that connection was opened, not this request sent. */
  readonly openedAt: number
  readonly endedAt: number
}

/** What a service noted: see service-notes.ts. */
export type ServiceNote =
  | { readonly what: 'listening' }
  | { readonly what: 'taken'; readonly port: number; readonly at: number }
  | { readonly what: 'begun'; readonly number: number }

/** A time that all processes of this machine share, whatever the clock is set to. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
