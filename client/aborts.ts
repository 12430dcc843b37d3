/** Settles as the work does, or rejects with the reason of the signal as soon as that aborts. */
export function untilAborted<Result>(
  work: Result | PromiseLike<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const working = Promise.resolve(work)
  if (signal === undefined) return working
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    working.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/**
 * The items of a source, until the signal aborts: the source is then closed, and nobody waits for
 * it. One listener serves all items, because one for each would cost more than the item.
 */
export function itemsUntilAborted<Item>(
  source: Iterable<Item> | AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncIterable<Item> {
  const items =
    Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  let closing: Promise<unknown> | undefined
  let stopWaiting = (_reason: unknown) => {}

  function close(): Promise<unknown> {
    // A generator that has aborted the signal itself still runs, and cannot be closed yet.
    closing ??= Promise.resolve().then(() => items.return?.())
    return closing
  }

  function abort(): void {
    close().catch(() => {})
    stopWaiting(signal.reason)
  }

  const forget = () => signal.removeEventListener('abort', abort)

  function waitFor<Result>(work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      stopWaiting = reject
      work().then(resolve, reject)
    })
  }

  async function take(): Promise<IteratorResult<Item>> {
    try {
      signal.throwIfAborted()
      const { done = false, value } = await items.next()
      if (done) forget()
      return { done, value: await value }
    } catch (error) {
      forget()
      throw error
    }
  }

  signal.addEventListener('abort', abort)
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => waitFor(take),
      async return() {
        if (!signal.aborted) await waitFor(close).finally(forget)
        return { done: true, value: undefined }
      },
    }),
  }
}
