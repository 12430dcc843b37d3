import { getAsset, getAssetKeys, isSea } from 'node:sea'

/**
 * The files inside the executable that `npm run build:executable` makes. A checkout and the
 * published package have them on disk instead.
 */
export const isExecutable = isSea()

/** The text of a file inside the executable. */
export function readEmbedded(name: string): string {
  return getAsset(name, 'utf8')
}

/** The names of the files inside the executable. */
export function listEmbedded(): string[] {
  return getAssetKeys()
}
