/** Whether this is the long run: `npm run test:faults`. */
export const isLong = process.env.FAULTS === 'long'

/** How much of something a test does: little within `npm test`, much in the long run. */
export function scale(short: number, long: number): number {
  return isLong ? long : short
}
