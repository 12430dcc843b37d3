import type { StoreLocation } from './open.ts'
import { type FileSummary, UnusableStore } from './store.ts'

/** Copies the store into a new file, while others may use it, and checks the copy. */
export async function backUpStore(
  location: StoreLocation,
  draft: string,
  onProgress: (done: number, total: number) => void,
): Promise<FileSummary> {
  if (location.engine === 'postgres') throw new UnusableStore(useItsOwn)
  const { backUp } = await import('./sqlite/backup.ts')
  return backUp(location.path, draft, onProgress)
}

/** Copies a backup into a new file that is to become the store at this place, and checks both. */
export async function restoreStore(
  file: string,
  location: StoreLocation,
  draft: string,
): Promise<FileSummary> {
  if (location.engine === 'postgres') throw new UnusableStore(useCopy)
  const { restore } = await import('./sqlite/backup.ts')
  return restore(file, location.path, draft)
}

const useItsOwn =
  'PostgreSQL has its own backup, which knows its locks, roles and log: use pg_dump --schema=plant_store, or pg_basebackup with an archive of the log. See docs/data.md.'
const useCopy =
  'A backup file is restored to sqlite:PATH. To bring it to PostgreSQL, restore it and then use: plant-store copy --from sqlite:PATH --to postgres://…; a dump of PostgreSQL itself is restored with pg_restore.'
