import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findMemory, newFolder } from '../../support/folder.ts'

const source = fileURLToPath(new URL('disk-shim.c', import.meta.url))

/** A fault of the disk, for the shim. */
export interface Fault {
  readonly kind: 'write' | 'fsync' | 'truncate'
  /** Which operation of this kind fails, counted from 1. */
  readonly number: number
  readonly error: 'EIO' | 'ENOSPC'
  readonly times: 'once' | 'on'
  /** Counts only operations on files whose names end so. */
  readonly suffix: '' | '.db' | '-wal' | '-shm'
}

export interface ShimOptions {
  /** Only files in this folder are recorded or fail. */
  readonly folder: string
  readonly trace?: string
  readonly fault?: Fault
  readonly strikes?: string
  readonly syncMs?: number
}

/** The shim for the environment of a process, or why there is none on this machine. */
export type Shim =
  | { readonly toEnv: (options: ShimOptions) => Record<string, string>; readonly skip: false }
  | { readonly toEnv: undefined; readonly skip: string }

/** Compiles the shim into a folder, or into one that is removed with the tests. */
export function compileShim(folder?: string): Shim {
  if (process.platform !== 'linux') {
    return { toEnv: undefined, skip: `LD_PRELOAD needs Linux, this is ${process.platform}` }
  }
  const library = join(folder ?? newQuickFolder(), 'disk-shim.so')
  const { error, stderr, status } = spawnSync(
    'cc',
    ['-shared', '-fPIC', '-o', library, source, '-ldl', '-lpthread'],
    { encoding: 'utf8' },
  )
  if (error) return { toEnv: undefined, skip: `there is no C compiler: ${error.message}` }
  if (status !== 0) throw new Error(`cc cannot compile the shim: ${stderr}`)
  return { toEnv: (options) => toEnv(library, options), skip: false }
}

function toEnv(library: string, { folder, trace, fault, strikes, syncMs }: ShimOptions) {
  return {
    LD_PRELOAD: library,
    DISK_FOLDER: folder,
    ...(trace !== undefined && { DISK_TRACE: trace }),
    ...(fault !== undefined && { DISK_FAULT: toText(fault) }),
    ...(strikes !== undefined && { DISK_STRIKES: strikes }),
    ...(syncMs !== undefined && { DISK_SYNC_MS: String(syncMs) }),
  }
}

export function toText({ kind, number, error, times, suffix }: Fault): string {
  return `${kind}:${number}:${error}:${times}:${suffix}`
}

/** Makes a new empty folder, in memory if possible, which is removed with the test. */
export function newQuickFolder(): string {
  return newFolder(findMemory() ?? tmpdir())
}
