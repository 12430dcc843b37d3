/** The user that owns no file. */
export const nobody = 65_534

/** Runs something as a user to whom the permissions of files apply. They do not apply to root. */
export async function withoutRights<Value>(use: () => Value | Promise<Value>): Promise<Value> {
  if (process.geteuid?.() !== 0) return use()
  process.seteuid?.(nobody)
  try {
    return await use()
  } finally {
    process.seteuid?.(0)
  }
}

/** Runs something inside `withoutRights` with the rights that the process had before. */
export function withRights(use: () => void): void {
  const user = process.geteuid?.() ?? 0
  process.seteuid?.(process.getuid?.() ?? 0)
  try {
    use()
  } finally {
    process.seteuid?.(user)
  }
}
