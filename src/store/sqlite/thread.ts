import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Committed } from './batches.ts'
import type { SqliteChange } from './changes.ts'
import { type ErrorParts, toError } from './error-parts.ts'
import { unconfirmed } from './failures.ts'

/** The file that a thread writes to, and how its connection is set. */
export interface ThreadFile {
  readonly path: string
  readonly settings: string
}

/** What a thread is told: to commit a batch, waiting at most so long for the lock of another process, or to end. */
export type Order =
  | { readonly changes: readonly SqliteChange[]; readonly lockTimeoutMs: number }
  | 'close'

/** What a thread tells: that it is ready, and then of each batch what became of it. */
export type Reply = 'ready' | Committed | { readonly failure: ErrorParts }

/** A thread with a connection of its own, on which it commits one batch at a time. */
export interface Thread {
  commit(changes: readonly SqliteChange[], lockTimeoutMs: number): Promise<Committed>
  /** Resolves when its connection is closed. No batch may be under way. */
  close(): Promise<void>
}

// Beside this file, which is source or compiled.
const program = new URL(`./thread-program${extname(import.meta.url)}`, import.meta.url)

/** Starts a thread, and resolves when it can commit. `onLost` is called when it then ends without being told to. */
export async function openThread(file: ThreadFile, onLost: () => void): Promise<Thread> {
  const worker = new Worker(program, {
    workerData: file,
    name: 'plant-store-writer',
    // What this process was started with is for its main program.
    execArgv: [],
  })
  let reply = Promise.withResolvers<Reply>()
  let reason: unknown = new Error('the thread that writes has ended')
  let state: 'opening' | 'open' | 'closing' = 'opening'

  // At rest it keeps no process alive; who waits for a reply does.
  worker.on('message', (message: Reply) => {
    worker.unref()
    reply.resolve(message)
  })
  worker.on('error', (error) => {
    reason = error
  })
  // A reply that cannot be read would be waited for in vain.
  worker.on('messageerror', () => void worker.terminate())
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      resolve()
      if (state === 'open') onLost()
      // It may have ended before its commit or after it.
      reply.reject(unconfirmed(reason))
    })
  })

  function ask(order: Order): Promise<Reply> {
    worker.postMessage(order)
    worker.ref()
    reply = Promise.withResolvers()
    return reply.promise
  }

  await reply.promise
  state = 'open'
  return {
    async commit(changes, lockTimeoutMs) {
      const answer = await ask({ changes, lockTimeoutMs })
      if (answer === 'ready') throw new Error('the thread that writes was started twice')
      if ('failure' in answer) throw toError(answer.failure)
      return answer
    },

    async close() {
      state = 'closing'
      worker.ref()
      worker.postMessage('close' satisfies Order)
      await ended
    },
  }
}
