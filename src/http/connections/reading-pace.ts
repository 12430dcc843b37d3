/** A chunk of this size means that more waits to be read. Most bodies are far smaller. */
const largeChunkBytes = 32 * 1024
/** How many large chunks are read in one turn of the event loop, over all connections. */
const chunksPerTurn = 16

let chunks = 0
const paused: Paused[] = []

interface Paused {
  resume(): void
}

/**
 * Counts a chunk of a body, and returns whether its source may be read on. Otherwise pause it: it
 * is resumed in a later turn. libuv would read up to 2 MiB from each connection before any other
 * request gets its turn.
 */
export function mayReadOn(source: Paused, chunk: Buffer): boolean {
  if (chunk.length < largeChunkBytes) return true
  if (chunks === 0) setImmediate(beginTurn)
  chunks++
  if (chunks <= chunksPerTurn) return true
  paused.push(source)
  return false
}

function beginTurn(): void {
  const resumed = paused.splice(0, chunksPerTurn)
  for (const source of resumed) source.resume()
  // They count before their bytes come, so that others leave room for them.
  chunks = resumed.length
  if (chunks > 0) setImmediate(beginTurn)
}
