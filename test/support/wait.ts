import { setTimeout as sleep } from 'node:timers/promises'
import { watchTestEnd } from './release.ts'

/** Longer than anything takes on a busy machine: only what never comes is missed. */
const maxWaitMs = 90_000
const lookMs = 5

/** Looks again and again until the condition holds, or the test has ended without it. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const hasTestEnded = watchTestEnd()
  const deadline = performance.now() + maxWaitMs
  while (!(await condition())) {
    if (performance.now() > deadline || hasTestEnded()) throw new Error(`not reached: ${what}`)
    await sleep(lookMs)
  }
}
