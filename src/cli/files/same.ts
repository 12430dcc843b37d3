import { existsSync, fstatSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** A path, or the descriptor of an open file. */
type File = string | number

/** Whether two names lead to one file, through links and however they are written. */
export function isSameFile(one: File, other: File): boolean {
  return toIdentity(one) === toIdentity(other)
}

/** The device and number of an existing file, or the resolved path of a new one. */
function toIdentity(file: File): string {
  if (typeof file === 'string' && !existsSync(file)) return resolveNew(file)
  const { dev, ino } =
    typeof file === 'number' ? fstatSync(file, { bigint: true }) : statSync(file, { bigint: true })
  return `${dev}:${ino}`
}

function resolveNew(path: string): string {
  const folder = dirname(resolve(path))
  return join(existsSync(folder) ? realpathSync(folder) : folder, basename(path))
}
