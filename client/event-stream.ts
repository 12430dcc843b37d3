import { PlantStoreError } from './errors.ts'

/** A block of an event stream; '' for a field that it does not have. */
export interface Block {
  readonly id: string
  readonly data: string
}

/** More than the largest plant takes, with each of its bytes written as an escape. */
const maxBlockCharacters = 8 * 1024 * 1024

/**
 * Builds a reader, which takes the bytes of an event stream as they arrive and returns the blocks
 * that are complete. The rest of a stream that ends inside a block is never used.
 */
export function buildStreamReader(): (bytes: Uint8Array) => Block[] {
  const decoder = new TextDecoder()
  let rest = ''
  let lastCharacter = ''

  return (bytes) => {
    const added = decoder.decode(bytes, { stream: true })
    // A search in all of it would copy a long block again with each of its pieces.
    const hasEnd = (lastCharacter + added).includes('\n\n')
    lastCharacter = added.at(-1) ?? lastCharacter
    rest += added
    const blocks: Block[] = []
    for (let end = hasEnd ? rest.indexOf('\n\n') : -1; end >= 0; end = rest.indexOf('\n\n')) {
      blocks.push(toBlock(rest.slice(0, end)))
      rest = rest.slice(end + 2)
    }
    if (rest.length > maxBlockCharacters)
      throw new PlantStoreError('The event stream has an event without an end.')
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
