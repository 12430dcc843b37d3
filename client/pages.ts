/**
 * An iterator over the items of pages. A hand-written one, because an async generator costs more
 * per item than the parsing of a plant.
 */
export function iteratePages<Item>(
  loadPage: () => Promise<readonly Item[] | undefined>,
  signal: AbortSignal | undefined,
  close: () => void,
): AsyncIterableIterator<Item> {
  let page: readonly Item[] = []
  let at = 0
  let isDone = false
  let loading: Promise<unknown> = Promise.resolve()

  async function load(): Promise<IteratorResult<Item>> {
    if (!isDone && (at >= page.length || signal?.aborted)) {
      try {
        signal?.throwIfAborted()
        const loaded = await loadPage()
        page = loaded ?? []
        at = 0
        if (loaded === undefined) finish()
      } catch (error) {
        finish()
        throw error
      }
    }
    return isDone ? { done: true, value: undefined } : { done: false, value: page[at++] as Item }
  }

  function finish(): void {
    isDone = true
    page = []
    close()
  }

  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next() {
      if (at < page.length && !signal?.aborted)
        return Promise.resolve({ done: false, value: page[at++] as Item })
      // Calls that do not wait for each other share the page that one of them loads.
      const turn = loading.then(load, load)
      loading = turn
      return turn
    },
    return() {
      finish()
      return Promise.resolve({ done: true, value: undefined })
    },
  }
}
