import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs'

/**
 * Makes every later fsync of a file that this process holds open fail, without any tool: its
 * descriptors are redirected to a device that accepts every byte and cannot be synced. A commit
 * that succeeds after this did not sync.
 */
export function breakSync(path: string): void {
  const descriptors = readdirSync('/proc/self/fd')
    .map(Number)
    .filter((number) => targetOf(number) === path)
  if (descriptors.length === 0) throw new Error(`${path} is not open`)
  for (const descriptor of descriptors) redirect(descriptor)
}

function redirect(descriptor: number): void {
  closeSync(descriptor)
  // The system gives out the lowest free number: the one that was just closed, or one below it.
  const opened: number[] = []
  do opened.push(openSync('/dev/null', 'r+'))
  while (opened.at(-1) !== descriptor && opened.length < 100)
  for (const number of opened.slice(0, -1)) closeSync(number)
  if (targetOf(descriptor) !== '/dev/null')
    throw new Error('the descriptor was taken by another file')
}

function targetOf(descriptor: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  }
}
