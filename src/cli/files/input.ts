import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { WrongConfig } from '../../config.ts'
import { type Format, formatNames } from '../../contract/formats.ts'
import { explainFile } from '../../store/file-errors.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import type { Part } from '../progress.ts'
import type { Terminal } from '../terminal.ts'

/** Names standard input or output where a file is expected. */
export const standardStream = '-'

export interface Input {
  /** The path, or the descriptor of standard input. */
  readonly file: string | number
  readonly chunks: AsyncIterable<Buffer>
  /** How much of the file was read; undefined where its length is unknown. */
  part(): Part | undefined
}

/** About one batch of an import, so that the next one is read while this one is stored. */
const chunkBytes = 64 * 1024

/** Opens a file for reading, or standard input. */
export async function openInput(
  path: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Input> {
  if (path === standardStream) {
    const { input } = terminal
    return { file: input.fd, chunks: readUntilAborted(input, signal), part: () => undefined }
  }
  try {
    const file = await open(path, constants.O_RDONLY)
    const status = await file.stat()
    if (status.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' })
    const stream = file.createReadStream({ highWaterMark: chunkBytes })
    const total = status.isFile() ? status.size : 0
    return {
      file: path,
      chunks: readUntilAborted(stream, signal),
      part: () => (total === 0 ? undefined : { done: stream.bytesRead, total }),
    }
  } catch (error) {
    throw new CommandFailed(exitCodes.noInput, `Cannot read ${path}: ${explainFile(error)}.`)
  }
}

/** Ends with the signal, even while it waits for bytes that may never come. */
async function* readUntilAborted(stream: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  const iterator = stream[Symbol.asyncIterator]()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason)
      stream.destroy()
    })
  })
  aborted.catch(() => {})
  for (;;) {
    const next = await Promise.race([iterator.next(), aborted])
    if (next.done) return
    yield next.value
  }
}

/** The format given by the flag, or else by the extension of the file. */
export function toFormat(path: string, given: string | undefined): Format {
  const name = given ?? /\.(\w+)(?:\.gz)?$/.exec(path.toLowerCase())?.[1]
  const format = formatNames.find((known) => known === (name === 'jsonl' ? 'ndjson' : name))
  if (format !== undefined) return format
  throw new WrongConfig([
    given === undefined
      ? `The name ${path} does not tell the format: add --format ${formatNames.join(' or ')}.`
      : `--format must be ${formatNames.join(' or ')}.`,
  ])
}
