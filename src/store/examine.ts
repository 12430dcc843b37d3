import type { Finding } from './finding.ts'
import type { StoreLocation } from './open.ts'

/** Examines a store without changing it, while services may use it. */
export async function examineStore(location: StoreLocation): Promise<Finding[]> {
  if (location.engine === 'sqlite') {
    const { examineFile } = await import('./sqlite/examine.ts')
    return examineFile(location.path)
  }
  const { examineServer } = await import('./postgres/examine.ts')
  return examineServer(location.url)
}
