/** A chunk of this size means that more waits to be read. Most bodies are far smaller. */
const largeChunkBytes = 32 * 1024
/** A body in more chunks than this is paced, however small they are. */
const freeChunks = 16
/** How many such chunks are read in one turn of the event loop, over all connections. */
const chunksPerTurn = 8

interface Source {
  resume(): void
}

/** How many such chunks this turn has read. */
let chunks = 0
const paused = new Set<Source>()

/**
 * Returns whether to read on after a chunk, the `count`-th of its body. Otherwise the caller pauses
 * the source, which is resumed in a later turn. libuv would read up to 2 MiB from each connection
 * before any other request gets its turn.
 */
export function mayReadOn(source: Source, chunk: Buffer, count: number): boolean {
  if (chunk.length < largeChunkBytes && count <= freeChunks) return true
  if (chunks === 0) setImmediate(beginTurn)
  chunks++
  if (chunks <= chunksPerTurn) return true
  paused.add(source)
  return false
}

/** Ends the pace of a source whose body is whole: from then on, others decide when it is read. */
export function endPace(source: Source): void {
  paused.delete(source)
}

function beginTurn(): void {
  const resumed = paused.values().take(chunksPerTurn).toArray()
  for (const source of resumed) {
    paused.delete(source)
    source.resume()
  }
  // They count before their bytes come, so that others leave room for them.
  chunks = resumed.length
  if (chunks > 0) setImmediate(beginTurn)
}
