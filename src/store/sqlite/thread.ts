import { extname } from 'node:path'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { Failure } from '../../contract/errors.ts'
import { isExecutable, readEmbedded } from '../../embedded.ts'
import { unconfirmed } from '../failures.ts'
import type { Committed, SqliteChange } from './transactions.ts'

/** The file that a thread writes to, and the settings of its connection. */
export interface ThreadFile {
  readonly path: string
  readonly settings: string
}

/** A message to the thread: commit a batch, or end. */
export type Order =
  | { readonly changes: readonly SqliteChange[]; readonly lockTimeoutMs: number }
  | 'close'

/** A message from the thread: it is ready, or the outcome of a batch. */
export type Reply = 'ready' | Committed | Failed

/** Sent between threads, an error and its cause lose their class and their members. */
interface Failed {
  readonly failure: Error
  readonly members: object
  readonly causeMembers: object
}

/** Rebuilds the error of the thread: a `Failure` with its number, or a plain `Error`. */
function toError({ failure, members, causeMembers }: Failed): Error {
  const { message, cause } = failure
  Object.assign(cause ?? {}, causeMembers)
  const { number } = members as Partial<Failure>
  return Object.assign(
    number === undefined ? failure : new Failure(number, message, { cause }),
    members,
  )
}

/** A thread with its own connection, which commits one batch at a time. */
export interface Thread {
  commit(changes: readonly SqliteChange[], lockTimeoutMs: number): Promise<Committed>
  /** Resolves when its connection is closed. No batch may be in flight. */
  close(): Promise<void>
}

/** The program is beside this file, both in the source and in the compiled tree. */
function startWorker(options: WorkerOptions): Worker {
  if (isExecutable) return new Worker(readEmbedded('thread-program.js'), { ...options, eval: true })
  const extension = extname(import.meta.url)
  return new Worker(new URL(`./thread-program${extension}`, import.meta.url), options)
}

/** Starts a thread and resolves when it can commit. `onLost` is called if it ends unasked. */
export async function openThread(file: ThreadFile, onLost: () => void): Promise<Thread> {
  const worker = startWorker({
    workerData: file,
    name: 'plant-store-writer',
    // The flags of this process are not meant for the thread.
    execArgv: [],
  })
  let reply = Promise.withResolvers<Reply>()
  let reason: unknown = new Error('the thread that writes has ended')
  let state: 'opening' | 'open' | 'closing' = 'opening'

  // Only a pending reply keeps the process alive.
  worker.on('message', (message: Reply) => {
    worker.unref()
    reply.resolve(message)
  })
  worker.on('error', (error) => {
    reason = error
  })
  // The caller of an unreadable reply would wait forever.
  worker.on('messageerror', () => void worker.terminate())
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      resolve()
      if (state === 'open') onLost()
      // It may have ended before or after the commit.
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
      if ('failure' in answer) throw toError(answer)
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
