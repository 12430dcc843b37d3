import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Entry } from '../../transfer/entry.ts'
import { CommandFailed, exitCodes, explainFile } from '../exit.ts'
import type { Progress } from '../progress.ts'

/** Where rejected lines go, each with its number and the reason. */
export interface Rejects {
  add(entry: Entry, reason: string): Promise<void>
  close(): Promise<void>
}

/** More lines than this belong in a file. */
const maxShown = 100

/** The first bytes of every file of rejects. */
const firstBytes = '{"line":'

/** Refuses a file that holds anything but the rejects of an earlier import, which would be lost. */
export function requireRejectsFile(path: string): void {
  if (!existsSync(path) || !statSync(path).isFile()) return
  const start = readStart(path)
  if (start === '' || start.startsWith(firstBytes)) return
  const message = `--rejects ${path} holds something other than rejected lines and was not changed. Name another file.`
  throw new CommandFailed(exitCodes.cannotCreate, message)
}

function readStart(path: string): string {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(firstBytes.length)
    return start.toString('latin1', 0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}

/** Opens the file for rejected lines, or shows them where none is named. */
export async function openRejects(path: string | undefined, progress: Progress): Promise<Rejects> {
  return path === undefined ? showRejects(progress) : writeRejects(path, await openFile(path))
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

function showRejects(progress: Progress): Rejects {
  let count = 0
  return {
    async add({ line }, reason) {
      count++
      if (count <= maxShown) progress.note(`line ${line}: ${reason}`)
      else if (count === maxShown + 1)
        progress.note('More lines were rejected. Use --rejects FILE to keep them all.')
    },
    async close() {},
  }
}
