import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { releaseAfterTest } from './release.ts'

const { PATH, NODE_COMPILE_CACHE } = process.env

/**
 * The environment of a program that shares nothing with its parent but compiled code, without which
 * a start takes four times as long.
 */
export const programEnv = {
  PATH,
  ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
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
