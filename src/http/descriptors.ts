import { readFileSync } from 'node:fs'

/** Descriptors that are left for files, the store and other services. */
const otherDescriptors = 500

/** How many descriptors connections may take. Half of a low limit is left for others. */
export function countFreeDescriptors(): number {
  const limit = findLimit()
  return Math.max(limit - otherDescriptors, Math.floor(limit / 2))
}

/** The soft limit of this process, which Node has raised to the hard one. */
function findLimit(): number {
  try {
    const [, soft = ''] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === '' ? Infinity : Number(soft)
  } catch {
    // The system does not tell.
    return Infinity
  }
}
