import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than anything takes on a busy machine: only what never comes is missed. */
const maxWaitMs = 60_000
const lookMs = 5

/** Looks again and again until the condition holds. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const deadline = performance.now() + maxWaitMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await sleep(lookMs)
  }
}
