import { spawnSync } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('disk-shim.c', import.meta.url))

/** One fault of the disk, as the shim understands it. */
export interface Fault {
  readonly kind: 'write' | 'fsync' | 'truncate'
  /** Which operation of this kind fails, from 1 on. */
  readonly number: number
  readonly error: 'EIO' | 'ENOSPC'
  readonly times: 'once' | 'on'
  /** How the names of the files end that are counted. */
  readonly suffix: '' | '.db' | '-wal' | '-shm'
}

export interface ShimOptions {
  /** Only what lies in here is recorded or fails. */
  readonly folder: string
  readonly trace?: string
  readonly fault?: Fault
  readonly strikes?: string
  readonly syncMs?: number
}

/** The shim, ready to be put into the environment of a process, or why it cannot be had here. */
export type Shim =
  | { readonly toEnv: (options: ShimOptions) => Record<string, string>; readonly skip: false }
  | { readonly toEnv: undefined; readonly skip: string }

/** Compiles the shim into a folder, or into one that is gone when the tests of this file are over. */
export function compileShim(place?: string): Shim {
  if (process.platform !== 'linux') {
    return { toEnv: undefined, skip: `LD_PRELOAD is of Linux, and this is ${process.platform}` }
  }
  const library = join(place ?? newQuickFolder(), 'disk-shim.so')
  const { error, stderr, status } = spawnSync(
    'cc',
    ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl', '-lpthread'],
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

/** A new empty folder, in memory where that is possible: what a power cut leaves is computed, and not left to a disk. */
export function newQuickFolder(): string {
  const folder = mkdtempSync(join(findQuickPlace(), 'plant-store-test-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function findQuickPlace(): string {
  try {
    accessSync('/dev/shm', constants.W_OK)
    return '/dev/shm'
  } catch {
    return tmpdir()
  }
}
