import { readPlants, toHeader } from './answers.ts'
import { run } from './call.ts'
import { requireId } from './json.ts'
import type { HeaderOf, RequestOf } from './operations.ts'
import type { Link } from './options.ts'
import { iteratePages } from './pages.ts'
import type { ListOptions, StoredPlant } from './types.ts'

/** Walks over all pages. The next one starts after the last plant, so a page can be read again. */
export function listPlants(link: Link, options: ListOptions): AsyncIterableIterator<StoredPlant> {
  const { tag, pageSize: limit = 1_000, signal } = options
  let after = options.after === undefined ? undefined : requireId(options.after)
  let isLast = false
  if (tag !== undefined) requireWellFormed(tag)

  function loadPage(): Promise<readonly StoredPlant[] | undefined> {
    return run<readonly StoredPlant[] | undefined>(link, {
      request: {
        method: 'GET',
        path: '/plants',
        query: { limit, after, tag },
      } satisfies RequestOf<'listPlants'>,
      signal,
      read(answer) {
        const plants = readPlants(answer)
        after = plants.at(-1)?.id
        isLast = toHeader(answer, 'Link' satisfies HeaderOf<'listPlants'>) === null
        return plants.length === 0 ? undefined : plants
      },
    })
  }

  return iteratePages(
    async () => (isLast ? undefined : loadPage()),
    signal,
    () => {},
  )
}

/** Refuses a tag that no address can hold. No plant has one. */
function requireWellFormed(tag: string): void {
  if (typeof tag === 'string' && tag.isWellFormed()) return
  throw new TypeError('tag must be a string without lone surrogates.')
}
