import { getAsset, getAssetKeys, isSea } from 'node:sea'

/**
 * The files inside the executable that `npm run build:executable` makes. A checkout and the
 * published package have them on disk instead.
 */
export const isExecutable = isSea()

/** Lists the names of all files that an executable was built with. */
export const manifestName = 'manifest.json'

/** The text of a file inside the executable. */
export function readEmbedded(name: string): string {
  return getAsset(name, 'utf8')
}

/** The names of the files inside the executable. */
export function listEmbedded(): string[] {
  return getAssetKeys()
}

/** The first file that is missing from the executable. */
export function findMissing(): string | undefined {
  const present = new Set(getAssetKeys())
  if (!present.has(manifestName)) return manifestName
  const expected: string[] = JSON.parse(readEmbedded(manifestName))
  return expected.find((name) => !present.has(name))
}
