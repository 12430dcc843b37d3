import { readFileSync } from 'node:fs'

const kinds = {
  1: 'create',
  2: 'write',
  3: 'truncate',
  4: 'sync',
  5: 'unlink',
  6: 'rename',
  7: 'make folder',
  8: 'failed sync',
} as const

/** An operation on the disk, recorded by the shim. */
export interface Operation {
  readonly kind: (typeof kinds)[keyof typeof kinds]
  readonly path: string
  /** Where a write begins, or the length of the file after a truncate. */
  readonly offset: number
  readonly data: Buffer
  /** The length of the trace up to the end of this operation. */
  readonly end: number
}

const headBytes = 24

export function readTrace(path: string): Operation[] {
  const bytes = readFileSync(path)
  const operations: Operation[] = []
  for (let start = 0; start < bytes.length; ) {
    const kind = kinds[bytes.readUInt32LE(start) as keyof typeof kinds]
    const dataStart = start + headBytes + bytes.readUInt32LE(start + 4)
    const end = dataStart + Number(bytes.readBigUInt64LE(start + 16))
    if (kind === undefined || end > bytes.length) throw new Error(`broken trace at ${start}`)
    operations.push({
      kind,
      path: bytes.toString('utf8', start + headBytes, dataStart),
      offset: Number(bytes.readBigUInt64LE(start + 8)),
      data: bytes.subarray(dataStart, end),
      end,
    })
    start = end
  }
  return operations
}
