/** Runs a task as soon as there is room for it, in the order of arrival. */
export type Gate = <Value>(task: () => Promise<Value>) => Promise<Value>

/** Builds a gate that has room for a few tasks at a time. */
export function buildGate(max: number): Gate {
  const waiting: (() => void)[] = []
  let running = 0

  return async (task) => {
    if (running < max) running++
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await task()
    } finally {
      // The next task takes over the place, so that none that comes later can take it.
      const next = waiting.shift()
      if (next === undefined) running--
      else next()
    }
  }
}
