import { releaseAfterTest } from './release.ts'

/** Counts the turns of the event loop until the test ends. Returns how many there were so far. */
export function countTurns(): () => number {
  let turns = 0
  const count = () => {
    turns++
    turn = setImmediate(count)
  }
  let turn = setImmediate(count)
  releaseAfterTest(() => clearImmediate(turn))
  return () => turns
}
