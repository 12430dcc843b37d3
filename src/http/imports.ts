import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../contract/errors.ts'
import { limits, type Timeouts } from '../contract/limits.ts'
import type { ImportReport, NewPlant } from '../contract/shapes.ts'
import type { ImportOutcome, Store } from '../store/store.ts'
import type { BatchBounds } from '../transfer/batches.ts'
import { toOnConflict } from '../transfer/outcome.ts'
import type { FileUpload } from './file-upload.ts'
import type { ImportRequest } from './import-file.ts'
import { buildTokenTurns } from './token-turns.ts'

/** The entries of a batch. Another request waits for one batch at most, so it is small then. */
const batchEntries = 500
const batchEntriesBesideOthers = 16
/** How long after another request batches stay small. */
const recentMs = 100
/** How many batches the store gets at a time, over all imports. */
const maxPuts = 2
/** The imports of all tokens share one queue. */
const allImports = ''
/** The pause between two checks whether the queue of the store has room. */
const fullPauseMs = 5

/** The imports of a server. */
export interface Imports {
  run(upload: FileUpload, request: ImportRequest): Promise<ImportReport>
  /** Ends every import with this failure. What they have stored stays. */
  endAll(failure: Failure): void
}

/** Builds the imports of a server. `countRequests` counts every request that has begun. */
export function buildImports(
  store: Store,
  countRequests: () => number,
  { requestTimeoutMs }: Timeouts,
): Imports {
  /** The running imports, and the token of each. */
  const running = new Map<FileUpload, string>()
  const whenFree = buildTokenTurns({ atOnce: maxPuts })
  const bounds: BatchBounds = {
    get entries() {
      return hasOtherRequests() ? batchEntriesBesideOthers : batchEntries
    },
    characters: 64 * 1024,
  }
  let fullTimer: NodeJS.Timeout | undefined
  let ownRequests = 0
  let otherRequests = 0
  let otherRequestAt = -recentMs

  /** Whether requests other than imports are arriving. */
  function hasOtherRequests(): boolean {
    const now = performance.now()
    const others = countRequests() - ownRequests
    if (others !== otherRequests) otherRequestAt = now
    otherRequests = others
    return now - otherRequestAt < recentMs
  }

  async function put(
    plants: readonly NewPlant[],
    { rule, tokenId }: ImportRequest,
    signal: AbortSignal,
  ): Promise<readonly ImportOutcome[]> {
    // Single creates are refused while the queue is full. An import can wait.
    while (store.isFull() && !signal.aborted) await sleep(fullPauseMs)
    signal.throwIfAborted()
    return store.importPlants(plants, toOnConflict(rule), tokenId)
  }

  /** While every slot is taken, ends the slowest import if it is too slow. */
  function watchWhenFull(): void {
    if (running.size < limits.imports) {
      clearTimeout(fullTimer)
      fullTimer = undefined
    } else if (fullTimer === undefined) {
      const before = [...running.keys()].map((upload) => ({ upload, bytes: upload.received() }))
      fullTimer = setTimeout(endSlowest, requestTimeoutMs, before).unref()
    }
  }

  function endSlowest(before: readonly { upload: FileUpload; bytes: number }[]): void {
    fullTimer = undefined
    const sent = before.map(({ upload, bytes }) => upload.received() - bytes)
    const least = Math.min(...sent)
    if (least < limits.importBytesInTimeWhenFull) {
      before[sent.indexOf(least)]?.upload.end(tooSlow(requestTimeoutMs))
    }
    watchWhenFull()
  }

  function requireRoom(tokenId: string): void {
    if (running.size >= limits.imports) throw tooManyImports('The service', limits.imports)
    const own = running.values().filter((id) => id === tokenId)
    if (own.toArray().length < limits.importsOfToken) return
    throw tooManyImports('This token', limits.importsOfToken)
  }

  return {
    async run(upload, request) {
      ownRequests++
      requireRoom(request.tokenId)
      running.set(upload, request.tokenId)
      watchWhenFull()
      try {
        const { importFile } = await import('./import-file.ts')
        const putOwn = (plants: readonly NewPlant[]) =>
          whenFree(allImports, () => put(plants, request, upload.signal))
        return await importFile({ ...request, upload, bounds, put: putOwn })
      } finally {
        running.delete(upload)
        watchWhenFull()
      }
    },

    endAll(failure) {
      for (const upload of running.keys()) upload.end(failure)
    },
  }
}

function tooSlow(requestTimeoutMs: number): Failure {
  return new Failure(
    40800,
    `While ${limits.imports} imports run, each must send ${limits.importBytesInTimeWhenFull} bytes within ${requestTimeoutMs / 1000} s.`,
  )
}

function tooManyImports(who: string, count: number): Failure {
  const message = `${who} runs ${count} imports already. Try again when one has ended.`
  return new Failure(50300, message, { reason: 'imports' })
}
