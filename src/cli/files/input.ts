import { createReadStream, fstatSync, open } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { WrongConfig } from '../../config.ts'
import { type Format, formatNames } from '../../contract/formats.ts'
import { explainFile } from '../../store/file-errors.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import type { Part } from '../progress.ts'
import { throwIfStopped } from '../signals.ts'
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

interface OpenInput extends Input {
  close(): void
}

/** About one batch of an import, so that the next one is read while this one is stored. */
const chunkBytes = 64 * 1024

/** Opens a file for reading, or standard input, uses it and closes it. */
export async function withInput<Value>(
  path: string,
  terminal: Terminal,
  signal: AbortSignal,
  use: (input: Input) => Promise<Value>,
): Promise<Value> {
  const input = await openInput(path, terminal, signal)
  try {
    return await use(input)
  } finally {
    input.close()
  }
}

async function openInput(
  path: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<OpenInput> {
  if (path === standardStream) {
    const { input } = terminal
    return {
      file: input.fd,
      chunks: readUntilAborted(input, signal),
      part: () => undefined,
      close() {},
    }
  }
  try {
    const fd = await Promise.race([openFile(path, 'r'), rejectOnAbort(signal)])
    return toInput(path, fd, signal)
  } catch (error) {
    throwIfStopped(signal, `Stopped before ${path} was opened.`)
    throw new CommandFailed(exitCodes.noInput, `Cannot read ${path}: ${explainFile(error)}.`)
  }
}

/** Opens without blocking the event loop: a named pipe waits for its writer. */
const openFile = promisify(open)

function toInput(path: string, fd: number, signal: AbortSignal): OpenInput {
  const stream = createReadStream(path, { fd, highWaterMark: chunkBytes })
  const status = fstatSync(fd)
  if (status.isDirectory()) {
    stream.destroy()
    throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  }
  const total = status.isFile() ? status.size : 0
  return {
    file: path,
    chunks: readUntilAborted(stream, signal),
    part: () => (total === 0 ? undefined : { done: stream.bytesRead, total }),
    close: () => stream.destroy(),
  }
}

/** Rejects with the signal, and never resolves. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  aborted.catch(() => {})
  return aborted
}

/** Ends with the signal, even while it waits for bytes that may never come. */
async function* readUntilAborted(stream: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  const iterator = stream[Symbol.asyncIterator]()
  const aborted = rejectOnAbort(signal)
  aborted.catch(() => stream.destroy())
  for (;;) {
    const next = await Promise.race([iterator.next(), aborted])
    if (next.done) return
    yield next.value
  }
}

const aliases: Record<Format, string> = { ndjson: 'jsonl', csv: 'tsv' }

/** The format given by the flag, or else by the extension of the file. */
export function toFormat(path: string, given: string | undefined): Format {
  const name = given ?? /\.(\w+)(?:\.gz)?$/.exec(path.toLowerCase())?.[1]
  const format = formatNames.find((known) => known === name || aliases[known] === name)
  if (format !== undefined) return format
  throw new WrongConfig([
    given === undefined
      ? `The name ${path} does not tell the format: add --format ${formatNames.join(' or ')}.`
      : `--format must be ${formatNames.join(' or ')}.`,
  ])
}
