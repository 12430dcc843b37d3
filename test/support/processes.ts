import { readdirSync, readFileSync } from 'node:fs'

/** The children of a process, on Linux. */
export function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => readProcess(pid, 'stat').split(') ')[1]?.split(' ')[1] === String(parent))
}

/** What Linux tells of a process; nothing if it has just ended. */
export function readProcess(pid: number, file: 'cmdline' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
