import type { StoreLocation } from './open.ts'
import { type FileSummary, UnusableStore } from './store.ts'

/** Copies the store, which may be in use, into a new file, and checks the copy. */
export async function backUpStore(
  location: StoreLocation,
  draft: string,
  onProgress: (done: number, total: number) => void,
): Promise<FileSummary> {
  if (location.engine === 'postgres') throw new UnusableStore(useItsTools)
  const { backUp } = await import('./sqlite/backup.ts')
  return backUp(location.path, draft, onProgress)
}

/** The path to restore a backup to. Only SQLite has one. */
export function toRestorePath(location: StoreLocation): string {
  if (location.engine === 'postgres') throw new UnusableStore(useCopy)
  return location.path
}

const useItsTools =
  'PostgreSQL has its own backup tools: use pg_dump --schema=plant_store, or pg_basebackup with a WAL archive. See docs/operating.md.'
const useCopy =
  'A backup is restored to sqlite:PATH. To move it to PostgreSQL, restore it, then use: plant-store copy --from sqlite:PATH --to postgres://…. A dump of PostgreSQL itself is restored with pg_restore.'
