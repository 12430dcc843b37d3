import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../contract/errors.ts'
import { delimiterNames, delimiters, type Format } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import type { ImportReport } from '../contract/shapes.ts'
import type { Store } from '../store/store.ts'
import { UnreadableFile } from '../transfer/entry.ts'
import type { Put } from '../transfer/import-entries.ts'
import { countLines, describeCounts, describeRest, type Tally } from '../transfer/tally.ts'
import type { FileUpload } from './file-upload.ts'

/** The pause between two checks whether the queue of the store has room. */
const fullPauseMs = 5
/** Other requests wait while SQLite stores a batch: some milliseconds. */
const batchEntries = 128

/** The parameters of an import, and the token that asked for it. */
export interface ImportRequest {
  readonly format: Format
  readonly delimiter?: string | undefined
  readonly rule: ConflictRule
  readonly dryRun: boolean
  readonly tokenId: string
}

/** The imports of a server. */
export interface Imports {
  run(upload: FileUpload, request: ImportRequest): Promise<ImportReport>
  /** Ends every import with this failure. What they have stored stays. */
  endAll(failure: Failure): void
}

/** Builds the imports of a server. */
export function buildImports(store: Store): Imports {
  /** The running imports, and the token of each. */
  const running = new Map<FileUpload, string>()

  function requireRoom(tokenId: string): void {
    if (running.size >= limits.imports) throw tooManyImports('The service', limits.imports)
    const own = running.values().filter((id) => id === tokenId)
    if (own.toArray().length < limits.importsOfToken) return
    throw tooManyImports('This token', limits.importsOfToken)
  }

  /** Single creates are refused while the queue is full. An import can wait. */
  function whileNotFull(put: Put, signal: AbortSignal): Put {
    return async (plants) => {
      while (store.isFull() && !signal.aborted) await sleep(fullPauseMs)
      signal.throwIfAborted()
      return put(plants)
    }
  }

  /** Imports a file. Its code is loaded with the first one. */
  async function importFile(upload: FileUpload, request: ImportRequest): Promise<ImportReport> {
    const { format, delimiter, rule, dryRun, tokenId } = request
    const { chunks, signal } = upload
    const { importEntries, putInto } = await import('../transfer/import-entries.ts')
    const { buildReader, readPlants } = await import('../transfer/read.ts')
    const reader = buildReader(format, delimiter)
    const trial = dryRun
      ? await (await import('../transfer/dry-run.ts')).openDryRun(store, rule)
      : undefined
    const put = trial?.put ?? whileNotFull(putInto(store, rule, tokenId), signal)
    const { header } = reader
    const job = { put, rule, signal, batchEntries, refusedLimit: limits.refusedLines, header }
    try {
      const { report, tally, error } = await importEntries(readPlants(chunks, reader), job)
      if (error === undefined) return report
      throw explain(error, dryRun ? nothingStored : describeDone(tally))
    } finally {
      await trial?.close()
    }
  }

  return {
    async run(upload, request) {
      requireRoom(request.tokenId)
      running.set(upload, request.tokenId)
      try {
        return await importFile(upload, request)
      } finally {
        running.delete(upload)
      }
    },

    endAll(failure) {
      for (const upload of running.keys()) upload.end(failure)
    },
  }
}

const nothingStored = ' This was a dry run: nothing was stored.'

/** What was imported before a failure, and what was not. */
function describeDone(tally: Tally): string {
  const done = countLines(tally) === 0 ? '' : ` Imported before that: ${describeCounts(tally)}.`
  return `${done} ${describeRest(tally)}`
}

/** Adds to a failure what was done before it. */
function explain(error: unknown, done: string): unknown {
  if (error instanceof Failure) {
    const { number, shortMessage, headers } = error
    return new Failure(number, shortMessage + done, { cause: error, headers })
  }
  if (!(error instanceof UnreadableFile)) return error
  const reason = error.message.replace(/^line/, 'Line')
  return new Failure(error.error, reason + toHint(error) + done, { cause: error })
}

/** How to send a file whose delimiter is not the requested one, or is not supported. */
function toHint({ delimiter }: UnreadableFile): string {
  if (delimiter === undefined) return ''
  const name = delimiterNames.find((one) => delimiters[one] === delimiter)
  return name === undefined
    ? ' Send it with commas, semicolons or tabs.'
    : ` Send delimiter=${name}, or no delimiter.`
}

function tooManyImports(who: string, count: number): Failure {
  const message = `${who} runs ${count} imports already. Try again when one has ended.`
  return new Failure(50300, message, { reason: 'imports' })
}
