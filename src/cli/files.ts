import { randomBytes } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  open,
  realpathSync,
  statSync,
} from 'node:fs'
import {
  chmod,
  link,
  open as openHandle,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { Socket } from 'node:net'
import { basename, dirname, join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { untilAborted } from '../../client/request.ts'
import { WrongConfig } from '../config.ts'
import { delimiterNames, delimiters, type Format, formatNames } from '../contract/formats.ts'
import { explainErrno } from '../errno.ts'
import { syncFolder } from '../store/sqlite/folder.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import type { Part } from './progress.ts'
import { throwIfStopped } from './signals.ts'
import { cannotPrint, type Terminal } from './terminal.ts'

/** Names standard input or output where a file is expected. */
export const standardStream = '-'

export interface Input {
  /** The path, or the descriptor of standard input. */
  readonly file: string | number
  readonly chunks: AsyncIterable<Buffer>
  /** How much of the file was read; undefined where its length is unknown. */
  part(): Part | undefined
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

async function openInput(path: string, terminal: Terminal, signal: AbortSignal): Promise<Input> {
  if (path === standardStream) {
    const { input } = terminal
    return {
      file: input.fd,
      chunks: readUntilAborted('standard input', input, signal),
      part: () => undefined,
      // A writer that goes on would keep the process alive.
      close: () => input.destroy(),
    }
  }
  try {
    const fd = await untilAborted(openFile(path, 'r'), signal)
    return toInput(path, fd, signal)
  } catch (error) {
    throwIfStopped(signal, `Stopped before ${path} was opened.`)
    throw cannotRead(path, error)
  }
}

/** Opens without blocking the event loop: a named pipe waits for its writer. */
const openFile = promisify(open)

function toInput(path: string, fd: number, signal: AbortSignal): Input {
  const status = fstatSync(fd)
  if (status.isDirectory()) {
    closeSync(fd)
    throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  }
  // Reading a named pipe as a file cannot be cancelled, and would keep the process alive.
  const stream = status.isFIFO()
    ? new Socket({ fd, readable: true, writable: false })
    : createReadStream(path, { fd, highWaterMark: chunkBytes })
  const total = status.isFile() ? status.size : 0
  return {
    file: path,
    chunks: readUntilAborted(path, stream, signal),
    part: () => (total === 0 ? undefined : { done: stream.bytesRead, total }),
    close: () => stream.destroy(),
  }
}

/** Ends with the signal, even while it waits for bytes that may never come. */
async function* readUntilAborted(
  name: string,
  stream: Readable,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const iterator = stream[Symbol.asyncIterator]()
  for (;;) {
    const next = await untilAborted(iterator.next(), signal).catch((error: unknown) => {
      throw isSystemError(error) ? cannotRead(name, error) : error
    })
    if (next.done) return
    yield next.value
  }
}

function cannotRead(name: string, error: unknown): CommandFailed {
  const message = `Cannot read ${name}: ${explainErrno(error)}.`
  return new CommandFailed(exitCodes.noInput, message, { cause: error })
}

/** How a file is written. */
export interface FileForm {
  readonly format: Format
  readonly delimiter: string | undefined
}

export interface FormFlags {
  readonly format: Format | undefined
  readonly delimiter: string | undefined
}

/** The form given by the flags, or else by the extension of the file. */
export function toForm(path: string, { format: given, delimiter }: FormFlags): FileForm {
  const format = given ?? toFormat(path)
  if (delimiter === undefined) return { format, delimiter }
  if (format !== 'csv') throw new WrongConfig(['--delimiter is for CSV only.'])
  return { format, delimiter: toDelimiter(delimiter) }
}

function toDelimiter(text: string): string {
  const name = delimiterNames.find((one) => one === text)
  if (name !== undefined) return delimiters[name]
  if (text === '\\t') return '\t'
  if (text.length === 1 && !/["\r\n]/.test(text)) return text
  throw new WrongConfig([
    '--delimiter must be one character, or comma, semicolon or tab; no quote and no newline.',
  ])
}

const aliases: Record<Format, string> = { ndjson: 'jsonl', csv: 'tsv' }

/** The format by the extension of a file. */
function toFormat(path: string): Format {
  const name = /\.(\w+)(?:\.gz)?$/.exec(path.toLowerCase())?.[1]
  const format = formatNames.find((known) => known === name || aliases[known] === name)
  if (format !== undefined) return format
  throw new WrongConfig([
    `The name ${path} does not show the format: add --format ${formatNames.join(' or ')}.`,
  ])
}

/** What happens to an existing file of that name. */
type Existing = 'replace' | 'refuse'

const ownerOnly = 0o600

/**
 * Writes a file as a draft beside its final path and renames it when it is complete and synced. A
 * failure or a signal leaves nothing behind.
 */
export async function makeFile<Value>(
  path: string,
  existing: Existing,
  signal: AbortSignal,
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  try {
    const target = existing === 'replace' ? await findTarget(path) : path
    if (target !== undefined) return await makeWhole(target, existing, signal, make)
    // A device or a pipe is written to directly. A stream waits for its reader, signal or not.
    return await untilAborted(make(path), signal)
  } catch (error) {
    throw explainWrite(path, error)
  }
}

/** The file that a path leads to, through links; undefined for a device or a pipe. */
async function findTarget(path: string): Promise<string | undefined> {
  if (!existsSync(path)) return path
  const status = await stat(path)
  return status.isFile() || status.isDirectory() ? realpath(path) : undefined
}

async function makeWhole<Value>(
  path: string,
  existing: Existing,
  signal: AbortSignal,
  make: (draft: string) => Promise<Value>,
): Promise<Value> {
  // SQLite would take a relative path such as `file:x.db` for a URL.
  const draft = resolve(`${path}.part-${randomBytes(6).toString('hex')}`)
  try {
    await makeDraft(draft)
    const value = await make(draft)
    await chmod(draft, ownerOnly)
    await syncFile(draft)
    throwIfStopped(signal, describeStop(path))
    await (existing === 'replace' ? rename(draft, path) : linkOnce(draft, path))
    syncFolder(dirname(resolve(path)))
    return value
  } finally {
    await removeDraft(draft)
  }
}

/** Creates an empty file that only its owner can read: SQLite would let everybody read it. */
export async function makeDraft(draft: string): Promise<void> {
  await writeFile(draft, '', { flag: 'wx', mode: ownerOnly })
}

/** What a signal has left of a file, or of standard output. */
export function describeStop(path: string): string {
  const rest = path === standardStream ? 'the output is incomplete' : 'nothing was kept'
  return `Stopped: ${rest}. Run the command again.`
}

/** Removes a draft, with the files beside it that SQLite leaves when it fails. */
export async function removeDraft(draft: string): Promise<void> {
  for (const suffix of ['', '-journal', '-wal', '-shm']) await rm(draft + suffix, { force: true })
}

/** Writes everything to standard output. */
export async function writeOut(
  source: Readable,
  output: Writable,
  signal: AbortSignal,
): Promise<void> {
  try {
    await untilAborted(pipeline(source, takeTurns, output, { end: false, signal }), signal)
  } catch (error) {
    throw isSystemError(error) ? cannotPrint(error) : error
  }
}

/** How long pieces are written before the event loop gets a turn. */
const turnMs = 20

/** A file takes each piece at once, and SQLite reads at once: no signal would ever be seen. */
async function* takeTurns(pieces: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  let turnEndsAt = performance.now() + turnMs
  for await (const piece of pieces) {
    yield piece
    if (performance.now() < turnEndsAt) continue
    await nextTurn()
    turnEndsAt = performance.now() + turnMs
  }
}

/**
 * A link, unlike a rename, fails where the name was taken meanwhile. Some file systems have no
 * links.
 */
async function linkOnce(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!withoutLinks.includes(code) || existsSync(path)) throw error
    await rename(draft, path)
  }
}

const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/** Explains an error of the system while a file was written. Returns any other error as it is. */
export function explainWrite(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error
  const message = `Cannot write ${path}: ${explainErrno(error)}.`
  return new CommandFailed(exitCodes.cannotCreate, message, { cause: error })
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error
}

/** Opens the file for writing, because Windows syncs no other. */
async function syncFile(path: string): Promise<void> {
  const file = await openHandle(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A path, or the descriptor of an open file. */
type File = string | number

/** Whether two names lead to one file, through links and however they are written. */
export function isSameFile(one: File, other: File): boolean {
  return toIdentity(one) === toIdentity(other)
}

/** The device and number of an existing file, or the resolved path of a new one. */
function toIdentity(file: File): string {
  if (typeof file === 'string' && !existsSync(file)) return resolveNew(file)
  const { dev, ino } =
    typeof file === 'number' ? fstatSync(file, { bigint: true }) : statSync(file, { bigint: true })
  return `${dev}:${ino}`
}

function resolveNew(path: string): string {
  const folder = dirname(resolve(path))
  return join(existsSync(folder) ? realpathSync(folder) : folder, basename(path))
}
