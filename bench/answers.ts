/** Takes the bytes that a connection received; returns how many answers they complete. */
export type AnswerReader = (connection: object, buffer: Buffer, bytes: number) => number

const headEnd = '\r\n\r\n'
const statusAt = 'HTTP/1.1 '.length

/**
 * Builds a reader for the answers to one kind of request. Bytes that are as long as one or more
 * answers of the usual length, with the right status in each, are taken as complete; everything
 * else is parsed as HTTP.
 */
export function buildAnswerReader(status: number, fail: (reason: string) => never): AnswerReader {
  const [first = 0, second = 0, third = 0] = Buffer.from(String(status))
  const pending = new WeakMap<object, Buffer>()
  let usualLength = Number.POSITIVE_INFINITY
  let pendingCount = 0

  function hasStatus(answer: Buffer, start: number): boolean {
    const at = start + statusAt
    return answer[at] === first && answer[at + 1] === second && answer[at + 2] === third
  }

  function isUsual(buffer: Buffer, bytes: number): boolean {
    if (bytes % usualLength !== 0) return false
    for (let start = 0; start < bytes; start += usualLength) {
      if (!hasStatus(buffer, start)) return false
    }
    return true
  }

  return (connection, buffer, bytes) => {
    const before = pendingCount > 0 ? pending.get(connection) : undefined
    if (before === undefined && isUsual(buffer, bytes)) return bytes / usualLength
    let rest = buffer.subarray(0, bytes)
    if (before !== undefined) {
      rest = Buffer.concat([before, rest])
      pending.delete(connection)
      pendingCount--
    }
    let complete = 0
    while (rest.length > 0) {
      const length = findLength(rest)
      if (length === undefined || rest.length < length) break
      if (!hasStatus(rest, 0)) fail(`not ${status}: ${rest.toString()}`)
      usualLength = length
      rest = rest.subarray(length)
      complete++
    }
    if (rest.length > 0) {
      pending.set(connection, Buffer.from(rest))
      pendingCount++
    }
    return complete
  }
}

/** The length of the whole answer, once enough of it has arrived to tell. */
function findLength(answer: Buffer): number | undefined {
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
