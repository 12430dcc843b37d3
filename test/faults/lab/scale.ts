/** Whether this is the long run, `npm run test:faults`. */
export const isLong = process.env.FAULTS === 'long'

/** Chooses a number: small for `npm test`, large for the long run. */
export function scale(short: number, long: number): number {
  return isLong ? long : short
}
