/** How much one step of a trim looks at, and deletes: no request should wait for it. */
export const rowsPerTrim = 501
const bytesPerTrim = 1024 * 1024

/**
 * Chooses the rows that a step of a trim deletes, among the oldest: those from before a time, up to
 * the first that is not, so that no gap comes up. The last row stays: the end of the journal needs
 * a row to be recognised by.
 */
export function planTrim(
  oldest: readonly (readonly [seq: number, at: number, bytes: number])[],
  before: number,
): { upTo: number | undefined; isDone: boolean } {
  let upTo: number | undefined
  let bytes = 0
  for (const [index, [seq, at, size]] of oldest.entries()) {
    if (at >= before) return { upTo, isDone: true }
    if (index === oldest.length - 1) break
    bytes += size
    if (upTo !== undefined && bytes > bytesPerTrim) return { upTo, isDone: false }
    upTo = seq
  }
  return { upTo, isDone: oldest.length < rowsPerTrim }
}
