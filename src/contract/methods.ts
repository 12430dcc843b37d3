import { operations } from './operations.ts'
import { pages } from './pages.ts'

/** The methods that each path supports: HEAD comes with GET, OPTIONS with every path. */
export const methodsByPath: ReadonlyMap<string, readonly string[]> = collectMethods()

function collectMethods(): Map<string, string[]> {
  const methods = new Map<string, string[]>()
  for (const { method, path } of Object.values(operations)) {
    methods.set(path, [...(methods.get(path) ?? []), method])
  }
  for (const { path } of Object.values(pages)) methods.set(path, ['GET'])
  for (const [path, known] of methods) {
    const head = known.includes('GET') ? ['HEAD'] : []
    methods.set(path, [...known, ...head, 'OPTIONS'].sort())
  }
  return methods
}
