import type { StoreLocation } from './open.ts'
import { type FileSummary, UnusableStore } from './store.ts'

/** Copies the store into a new file, while others may use it, and checks the copy. */
export async function backUpStore(
  location: StoreLocation,
  draft: string,
  onProgress: (done: number, total: number) => void,
): Promise<FileSummary> {
  if (location.engine === 'postgres') throw new UnusableStore(useItsTools)
  const { backUp } = await import('./sqlite/backup.ts')
  return backUp(location.path, draft, onProgress)
}

/** Copies a backup into a new file, the future store at this location, and checks both. */
export async function restoreStore(
  file: string,
  location: StoreLocation,
  draft: string,
): Promise<FileSummary> {
  if (location.engine === 'postgres') throw new UnusableStore(useCopy)
  const { restore } = await import('./sqlite/backup.ts')
  return restore(file, location.path, draft)
}

const useItsTools =
  'PostgreSQL has its own backup tools: use pg_dump --schema=plant_store, or pg_basebackup with an archive of the log. See docs/data.md.'
const useCopy =
  'A backup is restored to sqlite:PATH. To move it to PostgreSQL, restore it, then use: plant-store copy --from sqlite:PATH --to postgres://…. A dump of PostgreSQL itself is restored with pg_restore.'
