// Names that an older Node.js lacks would end it before it could say that it is too old.
import sea from 'node:sea'

/**
 * The files inside the executable that `npm run build:executable` makes. A checkout and the
 * published package have them on disk instead.
 */
export const isExecutable = sea.isSea()

/** The text of a file inside the executable. */
export function readEmbedded(name: string): string {
  return sea.getAsset(name, 'utf8')
}

/** The names of the files inside the executable. */
export function listEmbedded(): string[] {
  return sea.getAssetKeys()
}
