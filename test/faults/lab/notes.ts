/** The header that identifies a request in the notes of both sides. */
export const numberHeader = 'x-number'

/** A request as its client saw it. */
export interface Sent {
  readonly number: number
  readonly result: 'answered' | 'not sent' | 'not answered'
  /** The port of the client's end of the connection. */
  readonly port: number | undefined
  /** When the connection was opened, which can be before the request was sent. */
  readonly openedAt: number
  readonly endedAt: number
}

/** A note of a service: see service-notes.ts. */
export type ServiceNote =
  | { readonly what: 'listening' }
  | { readonly what: 'accepted'; readonly port: number; readonly at: number }
  | { readonly what: 'begun'; readonly number: number }

/** A time that all processes of this machine share, and that no change of the clock affects. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
