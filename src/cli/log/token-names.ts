import type { Store } from '../../store/store.ts'

/** The names of the tokens that changed plants. */
export interface TokenNames {
  isUnknown(tokenId: string | undefined): boolean
  refresh(): Promise<void>
  nameOf(tokenId: string | undefined): string
}

export async function buildTokenNames(store: Store): Promise<TokenNames> {
  let names = new Map<string, string>()

  async function refresh(): Promise<void> {
    const tokens = await store.listTokens()
    names = new Map(tokens.map(({ id, name }) => [id, name]))
  }

  await refresh()
  return {
    refresh,
    isUnknown: (id) => id !== undefined && !isOperator(id) && !names.has(id),
    nameOf(id) {
      if (id === undefined) return 'a command on the store'
      if (isOperator(id)) return 'PLANT_STORE_TOKEN'
      const name = names.get(id)
      return name === undefined ? `${id} (deleted)` : `${id} "${name}"`
    },
  }
}

function isOperator(id: string): boolean {
  return id.startsWith('operator-')
}
