import type { Random } from './random.ts'

/** Frames a body, nearly always correctly. */
export function frame(
  random: Random,
  body: Buffer,
  hasBody: boolean,
): { lines: string[]; content: Buffer } {
  const length = body.length
  if (!hasBody && random.isLikely(0.95)) return { lines: [], content: body }
  if (random.isLikely(0.8)) return { lines: [`Content-Length: ${length}`], content: body }
  if (random.isLikely(0.7)) {
    const encoding = random.isLikely(0.8)
      ? 'chunked'
      : random.pick([
          'Chunked',
          'chunked, chunked',
          'gzip, chunked',
          'chunked;a=b',
          'identity',
          'xchunked',
          '',
        ])
    return { lines: [`Transfer-Encoding: ${encoding}`], content: toChunks(random, body) }
  }
  const wrong = random.pick([
    [`Content-Length: ${length + 1}`],
    [`Content-Length: ${Math.max(0, length - 1)}`],
    [`Content-Length: ${length}`, `Content-Length: ${length}`],
    [`Content-Length: ${length}`, `Content-Length: ${length + 1}`],
    [`Content-Length: ${length}, ${length}`],
    [`Content-Length: +${length}`],
    [`Content-Length: -${length}`],
    [`Content-Length: 0x${length.toString(16)}`],
    [`Content-Length: ${length}.0`],
    [`Content-Length: 00${length}`],
    ['Content-Length: 99999999999999999999999'],
    ['Content-Length: 1048577'],
    ['Content-Length: '],
    [],
    [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked', `Content-Length: ${length}`],
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
  ])
  return { lines: wrong, content: random.isLikely(0.5) ? body : toChunks(random, body) }
}

function toChunks(random: Random, body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let start = 0; start < body.length; ) {
    const end = Math.min(body.length, start + 1 + random.below(40))
    const size = (end - start).toString(16)
    const odd = [
      `0${size}`,
      `${size};a=b`,
      `${size};a="b;c"`,
      ` ${size}`,
      `${size} `,
      `0x${size}`,
      `-${size}`,
    ]
    const written = random.isLikely(0.95) ? size : random.pick([...odd, '', 'FFFFFFFFFFFFFFFFF'])
    const lineEnd = random.isLikely(0.98) ? '\r\n' : random.pick(['\n', '\r', ''])
    chunks.push(
      Buffer.from(`${written}${lineEnd}`),
      body.subarray(start, end),
      Buffer.from(lineEnd),
    )
    start = end
  }
  const last = [
    '0\r\n\r\n',
    '0\r\nX: y\r\n\r\n',
    '0\r\n',
    '00\r\n\r\n',
    '0\r\nContent-Length: 9\r\n\r\n',
    '',
  ]
  return Buffer.concat([
    ...chunks,
    Buffer.from(random.isLikely(0.95) ? '0\r\n\r\n' : random.pick(last)),
  ])
}
