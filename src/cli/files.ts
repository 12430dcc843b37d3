import {
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  open,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { dirname, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import { WrongConfig } from '../config.ts'
import { type Format, formatNames } from '../contract/formats.ts'
import { explainErrno } from '../errno.ts'
import { nameOnce, syncFolder, withDraft } from '../paths.ts'
import { inTurns } from '../transfer/turns.ts'
import type { Call } from './commands.ts'
import { CommandFailed, cannotPrint, exitCodes, type Part, type Terminal } from './terminal.ts'

/** Names standard input or output where a file is expected. */
export const standardStream = '-'

export interface Input {
  /** Its descriptor. */
  readonly file: number
  readonly chunks: AsyncIterable<Buffer>
  /** How much of the file was read; undefined where its length is unknown. */
  part(): Part | undefined
}

/** About one batch of an import, so that the next one is read while this one is stored. */
const chunkBytes = 64 * 1024

/** Opens without blocking the event loop: a named pipe waits for its writer. */
const openFile = promisify(open)

/** Opens a file for reading, or standard input, uses it and closes it. */
export async function withInput<Value>(
  path: string,
  { input }: Pick<Terminal, 'input'>,
  use: (input: Input) => Promise<Value>,
): Promise<Value> {
  const isStandard = path === standardStream
  const file = isStandard ? input.fd : await openFile(path, 'r').catch(cannotRead)
  const stream = isStandard ? input : readFrom(file, path)
  let done = 0

  function cannotRead(error: unknown): never {
    if (!isSystemError(error)) throw error
    const message = `Cannot read ${isStandard ? 'standard input' : path}: ${explainErrno(error)}.`
    throw new CommandFailed(exitCodes.noInput, message, { cause: error })
  }

  async function* read(): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of stream) {
        done += chunk.length
        yield chunk
      }
    } catch (error) {
      cannotRead(error)
    }
  }

  try {
    // That of a named pipe is 0.
    const total = isStandard ? 0 : fstatSync(file).size
    const part = () => (total === 0 ? undefined : { done, total })
    return await use({ file, chunks: read(), part })
  } finally {
    // Otherwise a writer that never ends would keep the process alive.
    stream.destroy()
  }
}

/** Reading a named pipe as a file cannot be cancelled, and would keep the process alive. */
function readFrom(fd: number, path: string): Readable {
  return fstatSync(fd).isFIFO()
    ? new Socket({ fd, readable: true, writable: false })
    : createReadStream(path, { fd, highWaterMark: chunkBytes })
}

const aliases: Record<Format, string> = { ndjson: 'jsonl', csv: 'tsv' }

/** The format of a file: the one that a flag names, or else that of its extension. */
export function toFormat(path: string, flags: Partial<Call<'export'>['flags']>): Format {
  const name = /\.(\w+)(?:\.gz)?$/.exec(path.toLowerCase())?.[1]
  const isNamed = (one: Format) => one === name || aliases[one] === name
  const format = flags.format ?? formatNames.find(isNamed)
  if (format === undefined) {
    throw new WrongConfig([
      `The name ${path} does not show the format: add --format ${formatNames.join(' or ')}.`,
    ])
  }
  const wrong = format === 'csv' ? undefined : forCsv.find((flag) => flags[flag])
  if (wrong === undefined) return format
  throw new WrongConfig([`--${wrong} is for CSV only.`])
}

const forCsv = ['delimiter', 'spreadsheet'] as const

/** Writes a file, gzipped if its name ends in .gz, or standard output if that is named. */
export async function writeTo(
  path: string,
  source: Readable,
  existing: 'replace' | 'refuse',
  { output }: Pick<Terminal, 'output'>,
): Promise<void> {
  if (path !== standardStream) {
    const gzip = path.endsWith('.gz') ? [createGzip()] : []
    const write = (draft: string) => pipeline([source, ...gzip, createWriteStream(draft)])
    return makeFile(path, existing, write)
  }
  try {
    await pipeline(source, inTurns, output, { end: false })
  } catch (error) {
    throw isSystemError(error) ? cannotPrint(error) : error
  }
}

/**
 * Writes a file as a draft beside its final path and renames it when it is complete and synced. A
 * failure or a signal leaves nothing behind.
 */
export async function makeFile<Value>(
  path: string,
  existing: 'replace' | 'refuse',
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  try {
    const target = existing === 'replace' ? findTarget(path) : path
    // A device or a pipe is written to directly.
    if (target === undefined) return await make(path)
    return await withDraft(target, async (draft) => {
      const value = await make(draft)
      // Syncs the draft.
      await appendFile(draft, '', { flush: true })
      if (existing === 'replace') renameSync(draft, target)
      else nameOnce(draft, target)
      syncFolder(dirname(resolve(target)))
      return value
    })
  } catch (error) {
    throw explainWrite(path, error)
  }
}

/** The file that a path leads to, through links; undefined for a device or a pipe. */
function findTarget(path: string): string | undefined {
  if (!existsSync(path)) return path
  const status = statSync(path)
  return status.isFile() || status.isDirectory() ? realpathSync(path) : undefined
}

/** Explains an error of the system while a file was written. Returns any other error as it is. */
export function explainWrite(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error
  const message = `Cannot write ${path}: ${explainErrno(error)}.`
  return new CommandFailed(exitCodes.cannotCreate, message, { cause: error })
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error
}
