import type { Store } from '../../store/store.ts'
import type { IssuedToken } from '../../tokens/issue.ts'

/** Prints a new token. A token that cannot be printed is deleted, because nobody has it. */
export async function printToken(
  store: Pick<Store, 'deleteTokens'>,
  { record }: IssuedToken,
  print: () => Promise<void>,
): Promise<void> {
  try {
    await print()
  } catch (error) {
    await store.deleteTokens([record.id])
    throw error
  }
}
