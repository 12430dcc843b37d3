/** What one block of an event stream says; '' for a field that it does not have. */
export interface Block {
  readonly id: string
  readonly data: string
}

/** More than the largest plant takes, with each of its bytes written as an escape. */
const longestBlock = 8 * 1024 * 1024

/**
 * Answers a function that takes the bytes of an event stream as they arrive and answers the blocks
 * that are complete. The rest of a stream that ends inside a block is never used.
 */
export function buildStreamReader(): (bytes: Uint8Array) => Block[] {
  const decoder = new TextDecoder()
  let rest = ''

  return (bytes) => {
    // Only what is new can hold the end of a block, and the character before it.
    const searchFrom = Math.max(rest.length - 1, 0)
    rest += decoder.decode(bytes, { stream: true })
    const blocks: Block[] = []
    let start = 0
    for (let end = rest.indexOf('\n\n', searchFrom); end >= 0; end = rest.indexOf('\n\n', start)) {
      blocks.push(toBlock(rest.slice(start, end)))
      start = end + 2
    }
    rest = rest.slice(start)
    if (rest.length > longestBlock) throw new Error('The event stream has a line without an end.')
    return blocks
  }
}

function toBlock(text: string): Block {
  let id = ''
  let data = ''
  for (const line of text.split('\n')) {
    if (line.startsWith('id:')) id = line.slice(3).trim()
    if (line.startsWith('data:')) data += line.slice(5)
  }
  return { id, data }
}
