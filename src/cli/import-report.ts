import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Entry } from '../transfer/entry.ts'
import { CommandFailed, exitCodes, explainFile } from './outcome.ts'
import { type Progress, toText } from './progress.ts'

/** What became of the lines. */
export type Counts = Record<
  'stored' | 'already there' | 'replaced' | 'kept' | 'conflict' | 'invalid',
  number
>

export function newCounts(): Counts {
  return { stored: 0, 'already there': 0, replaced: 0, kept: 0, conflict: 0, invalid: 0 }
}

/** Where lines go that were not taken, each with its number and the reason. */
export interface Rejects {
  add(entry: Entry, reason: string, progress: Progress): Promise<void>
  close(): Promise<void>
}

/** How many are shown on the terminal; beyond that, a file is the better place. */
const maxShown = 100

/** Refuses a file that is something else than the rejects of an import before: it would be lost. */
export function requireRejectsFile(path: string): void {
  if (!existsSync(path) || !statSync(path).isFile()) return
  const start = readStart(path)
  if (start === '' || start.startsWith(firstWords)) return
  const message = `--rejects ${path} is a file with something else in it, and was not touched: name another.`
  throw new CommandFailed(exitCodes.cannotCreate, message)
}

/** What a file of rejects begins with. */
const firstWords = '{"line":'

function readStart(path: string): string {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(firstWords.length)
    return start.toString('latin1', 0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}

export async function openRejects(path: string | undefined): Promise<Rejects> {
  return path === undefined ? showRejects() : writeRejects(path, await openFile(path))
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'w', 0o600)
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

function cannotWrite(path: string, error: unknown): CommandFailed {
  const message = `Cannot write --rejects ${path}: ${explainFile(error)}.`
  return new CommandFailed(exitCodes.cannotCreate, message, { cause: error })
}

function writeRejects(path: string, file: FileHandle): Rejects {
  return {
    async add({ line, text }, reason) {
      try {
        await file.appendFile(`${JSON.stringify({ line, reason, text })}\n`)
      } catch (error) {
        throw cannotWrite(path, error)
      }
    },
    close: () => file.close(),
  }
}

function showRejects(): Rejects {
  let count = 0
  return {
    async add({ line }, reason, progress) {
      count++
      if (count <= maxShown) progress.note(`line ${line}: ${reason}`)
      else if (count === maxShown + 1)
        progress.note('More lines were not taken: use --rejects FILE to keep them all.')
    },
    async close() {},
  }
}

const words: Record<keyof Counts, string> = {
  stored: 'stored',
  'already there': 'already there',
  replaced: 'replaced',
  kept: 'kept as they were',
  conflict: 'in conflict',
  invalid: 'invalid',
}

/** The last line: how many of each kind. */
export function describeCounts(
  counts: Counts,
  seconds: number,
  { isWhole, rejects }: { readonly isWhole: boolean; readonly rejects: string | undefined },
): string {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const kinds = (Object.keys(counts) as (keyof Counts)[])
    .filter((kind) => kind === 'stored' || counts[kind] > 0)
    .map((kind) => `${toText(counts[kind])} ${words[kind]}`)
  const rejected = counts.conflict + counts.invalid
  const where =
    rejects !== undefined && rejected > 0
      ? ` See ${rejects} for the lines that were not taken.`
      : ''
  const speed = `${seconds.toFixed(1)} s, ${toText(Math.round(all / seconds))}/s`
  return `${isWhole ? 'Imported' : 'Imported so far'}: ${kinds.join(', ')} (${speed}).${where}\n`
}
