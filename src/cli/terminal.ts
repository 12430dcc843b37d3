import type { Writable } from 'node:stream'

/** Where a command writes to, and which release speaks. */
export interface Terminal {
  readonly version: string
  /** Writes what the command was asked for. */
  print(text: string): void
  /** Writes everything else, such as logs and hints. */
  readonly errors: Writable & { readonly isTTY?: boolean; readonly fd?: number }
}
