/** Takes the bytes that a connection received; returns whether they complete the answer. */
export type AnswerReader = (connection: object, buffer: Buffer, bytes: number) => boolean

const headEnd = '\r\n\r\n'
const statusAt = 'HTTP/1.1 '.length

/**
 * Builds a reader for the answers to one kind of request. A single chunk with the right status and
 * the length of the previous answer is taken as complete; everything else is parsed as HTTP.
 */
export function buildAnswerReader(status: number, fail: (reason: string) => never): AnswerReader {
  const [first = 0, second = 0, third = 0] = Buffer.from(String(status))
  const pending = new WeakMap<object, Buffer>()
  let usualLength = -1
  let pendingCount = 0

  function hasStatus(answer: Buffer): boolean {
    return (
      answer[statusAt] === first &&
      answer[statusAt + 1] === second &&
      answer[statusAt + 2] === third
    )
  }

  return (connection, buffer, bytes) => {
    const before = pendingCount > 0 ? pending.get(connection) : undefined
    if (before === undefined && bytes === usualLength && hasStatus(buffer)) return true
    const part = buffer.subarray(0, bytes)
    const answer = before === undefined ? part : Buffer.concat([before, part])
    const length = findLength(answer)
    if (length !== undefined && answer.length >= length) {
      if (!hasStatus(answer) || answer.length > length) fail(`not ${status}: ${answer.toString()}`)
      if (before !== undefined) pendingCount--
      pending.delete(connection)
      usualLength = length
      return true
    }
    if (before === undefined) pendingCount++
    pending.set(connection, before === undefined ? Buffer.from(part) : answer)
    return false
  }
}

/** The length of the whole answer, once enough of it has arrived to tell. */
export function findLength(answer: Buffer): number | undefined {
  const end = answer.indexOf(headEnd)
  if (end < 0) return undefined
  const head = answer.toString('latin1', 0, end).toLowerCase()
  const bodyAt = end + headEnd.length
  const field = head.indexOf('\r\ncontent-length:')
  if (field >= 0) return bodyAt + Number.parseInt(head.slice(field + 17), 10)
  if (head.includes('\r\ntransfer-encoding: chunked')) return findChunkedEnd(answer, bodyAt)
  return bodyAt
}

function findChunkedEnd(answer: Buffer, bodyAt: number): number | undefined {
  let at = bodyAt
  for (;;) {
    const lineEnd = answer.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(answer.toString('latin1', at, lineEnd), 16)
    at = lineEnd + 2 + size + 2
    if (size === 0) return at
  }
}
