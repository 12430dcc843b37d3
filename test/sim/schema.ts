/** Stands in for `src/store/postgres/schema.ts`: the simulated server has the schema. */
export async function prepareSchema(): Promise<undefined> {
  return undefined
}

export async function renewIfCopied(): Promise<void> {}
