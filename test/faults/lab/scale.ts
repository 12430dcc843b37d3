/** Whether this is the long run, `FAULTS=long npm run test:faults`. */
export const isLong = process.env.FAULTS === 'long'

/** Chooses a number: small for `npm run test:faults`, large for the long run. */
export function scale(short: number, long: number): number {
  return isLong ? long : short
}
