import type { Readable, Writable } from 'node:stream'

/** Where a command reads from and writes to, and which release speaks. */
export interface Terminal {
  readonly version: string
  readonly input: Readable
  /** Takes what the command was asked for. */
  readonly output: Writable
  /** Writes what the command was asked for, if it is little. */
  print(text: string): void
  /** Takes everything else, such as logs and hints. */
  readonly errors: Writable & { readonly isTTY?: boolean; readonly fd?: number }
}
