import { AsyncResource } from 'node:async_hooks'
import { after, getTestContext } from 'node:test'

type Release = () => unknown

/** Hooks that are registered in here belong to the file, whatever test runs at that time. */
const file = new AsyncResource('TestFile')
const stacks = new WeakMap<object, AsyncDisposableStack>()
let fileStack: AsyncDisposableStack | undefined

/**
 * Releases something when the test that opened it ends, passed or failed, or the suite whose
 * `before` opened it. The newest goes first, and a release that fails keeps no other from running.
 */
export function releaseAfterTest(release: Release): void {
  const context = getTestContext()
  if (context === undefined || !('after' in context)) {
    releaseAfterFile(release)
    return
  }
  let stack = stacks.get(context)
  if (stack === undefined) {
    const opened = new AsyncDisposableStack()
    stacks.set(context, opened)
    context.after(() => opened.disposeAsync())
    // The runner skips the hooks of a suite whose tests are all filtered out by name.
    releaseAfterFile(() => opened.disposeAsync())
    stack = opened
  }
  stack.defer(release as () => Promise<void>)
}

/** Releases something when all tests of the file have ended, whoever opened it. */
export function releaseAfterFile(release: Release): void {
  if (fileStack === undefined) {
    const opened = new AsyncDisposableStack()
    file.runInAsyncScope(() => after(() => opened.disposeAsync()))
    fileStack = opened
  }
  fileStack.defer(release as () => Promise<void>)
}

/** Makes a release that runs once, though a test calls it and the end of the test calls it again. */
export function runOnce<Outcome>(release: () => Promise<Outcome>): () => Promise<Outcome> {
  let running: Promise<Outcome> | undefined
  return () => (running ??= release())
}
