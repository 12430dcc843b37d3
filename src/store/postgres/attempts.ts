import { setTimeout as sleep } from 'node:timers/promises'
import { isCollision, isLoss, isTimeout, isUnwritable, toWriteFailure } from './failures.ts'

/** Processes that write the same ids collide again and again before each has had its turn. */
const maxAttempts = 20
const collisionPauseMs = 10

/** Makes a write, again after a collision. `onUseless` hears that its server takes no more. */
export async function attemptWrite<Value>(
  run: () => Promise<Value>,
  onUseless: (reason: unknown) => void,
): Promise<Value> {
  for (let count = 1; ; count++) {
    try {
      return await run()
    } catch (error) {
      if (isCollision(error) && count < maxAttempts) {
        // A random pause, so that the two do not collide again.
        await sleep(Math.random() * count * collisionPauseMs)
        continue
      }
      if (isUnwritable(error) || (isLoss(error) && !isTimeout(error))) onUseless(error)
      throw toWriteFailure(error)
    }
  }
}
