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
  findStack().defer(release as () => Promise<void>)
}

/** Releases something when all tests of the file have ended, whichever of them opened it. */
export function releaseAfterFile(release: Release): void {
  findFileStack().defer(release as () => Promise<void>)
}

/** Answers a function that tells whether the test that runs now has ended. */
export function watchTestEnd(): () => boolean {
  const stack = findStack()
  return () => stack.disposed
}

/** Makes a release that runs once, though the test calls it and its end calls it again. */
export function runOnce<Outcome>(release: () => Promise<Outcome>): () => Promise<Outcome> {
  let running: Promise<Outcome> | undefined
  return () => (running ??= release())
}

function findStack(): AsyncDisposableStack {
  const context = getTestContext()
  if (context === undefined || !('after' in context)) return findFileStack()
  const found = stacks.get(context)
  // Node.js 24 may name a test that has ended, where the promise that is awaited came from it.
  if (found !== undefined) return found.disposed ? findFileStack() : found
  const stack = new AsyncDisposableStack()
  stacks.set(context, stack)
  context.after(() => stack.disposeAsync())
  // The runner skips the hooks of a suite whose tests are all filtered out by name.
  releaseAfterFile(() => stack.disposeAsync())
  return stack
}

function findFileStack(): AsyncDisposableStack {
  if (fileStack !== undefined) return fileStack
  const stack = new AsyncDisposableStack()
  file.runInAsyncScope(() => after(() => stack.disposeAsync()))
  fileStack = stack
  return stack
}
