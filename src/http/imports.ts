import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ImportReport, NewPlant } from '../contract/shapes.ts'
import type { ImportOutcome, Store } from '../store/store.ts'
import { toOnConflict } from '../transfer/outcome.ts'
import type { FileUpload } from './file-upload.ts'
import type { ImportRequest } from './import-file.ts'

/** The pause between two checks whether the queue of the store has room. */
const fullPauseMs = 5

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

  function requireRoom(tokenId: string): void {
    if (running.size >= limits.imports) throw tooManyImports('The service', limits.imports)
    const own = running.values().filter((id) => id === tokenId)
    if (own.toArray().length < limits.importsOfToken) return
    throw tooManyImports('This token', limits.importsOfToken)
  }

  return {
    async run(upload, request) {
      requireRoom(request.tokenId)
      running.set(upload, request.tokenId)
      try {
        const { importFile } = await import('./import-file.ts')
        const putOwn = (plants: readonly NewPlant[]) => put(plants, request, upload.signal)
        return await importFile({ ...request, upload, put: putOwn })
      } finally {
        running.delete(upload)
      }
    },

    endAll(failure) {
      for (const upload of running.keys()) upload.end(failure)
    },
  }
}

function tooManyImports(who: string, count: number): Failure {
  const message = `${who} runs ${count} imports already. Try again when one has ended.`
  return new Failure(50300, message, { reason: 'imports' })
}
