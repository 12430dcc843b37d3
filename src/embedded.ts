import { getAsset, getAssetKeys, isSea } from 'node:sea'

/**
 * The files inside of the executable that `npm run build:executable` makes. A checkout and the
 * published package have them on disk instead.
 */
export const isExecutable = isSea()

/** Lists the names of all files that an executable was built with. */
export const manifestName = 'manifest.json'

/** The text of a file inside of the executable. */
export function readEmbedded(name: string): string {
  return getAsset(name, 'utf8')
}

/** The names of the files inside of the executable. */
export function listEmbedded(): string[] {
  return getAssetKeys()
}

/** The first file that the executable should have inside and does not. */
export function findMissing(): string | undefined {
  const present = new Set(getAssetKeys())
  if (!present.has(manifestName)) return manifestName
  const expected: string[] = JSON.parse(readEmbedded(manifestName))
  return expected.find((name) => !present.has(name))
}
