import type { Store } from '../../store/store.ts'

/** The names of the tokens that changed plants. */
export interface TokenNames {
  isUnknown(tokenId: string | undefined): boolean
  refresh(): Promise<void>
  /** The name of a token; null if nobody used one, or if it was deleted. */
  nameOf(tokenId: string | undefined): string | null
  /** Who made a change, in words. */
  describe(tokenId: string | undefined): string
}

export async function buildTokenNames(store: Store): Promise<TokenNames> {
  let names = new Map<string, string>()

  async function refresh(): Promise<void> {
    const tokens = await store.listTokens()
    names = new Map(tokens.map(({ id, name }) => [id, name]))
  }

  function nameOf(id: string | undefined): string | null {
    if (id === undefined) return null
    return isOperator(id) ? 'PLANT_STORE_TOKEN' : (names.get(id) ?? null)
  }

  await refresh()
  return {
    refresh,
    isUnknown: (id) => id !== undefined && !isOperator(id) && !names.has(id),
    nameOf,
    describe(id) {
      if (id === undefined) return 'a command on the store'
      const name = nameOf(id)
      if (name === null) return `${id} (deleted)`
      return isOperator(id) ? name : `${id} "${name}"`
    },
  }
}

function isOperator(id: string): boolean {
  return id.startsWith('operator-')
}
