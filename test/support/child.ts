import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { releaseAfterTest } from './release.ts'

const { PATH, NODE_COMPILE_CACHE: cache } = process.env

/**
 * The environment of a program that shares nothing with its parent but compiled code, without which
 * a start takes four times as long. The name of its folder is relative to that of the run.
 */
export const programEnv = {
  PATH,
  ...(cache && { NODE_COMPILE_CACHE: resolve(import.meta.dirname, '../..', cache) }),
}

/** Kills a process when the test ends, unless it has ended by then. */
export function killAfterTest(child: ChildProcess): void {
  releaseAfterTest(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    // Processes that it started may hold the other ends, and must not keep this one from ending.
    for (const stream of child.stdio) stream?.destroy()
  })
}
