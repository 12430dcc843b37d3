import { readPlants, toHeader } from './answers.ts'
import { run } from './call.ts'
import { requireId } from './json.ts'
import type { HeaderOf, RequestOf } from './operations.ts'
import type { Link } from './options.ts'
import { iteratePages } from './pages.ts'
import type { ListOptions, StoredPlant } from './types.ts'

/**
 * Walks over all pages. The next one starts after an id, so a page can be read again. A page of a
 * search can be empty although others follow.
 */
export function listPlants(link: Link, options: ListOptions): AsyncIterableIterator<StoredPlant> {
  const { tag, name, order, pageSize: limit = 1_000, signal } = options
  let after = options.after === undefined ? undefined : requireId(options.after)
  let isLast = false
  requireWellFormed('tag', tag)
  requireWellFormed('name', name)

  function loadPage(): Promise<readonly StoredPlant[]> {
    return run<readonly StoredPlant[]>(link, {
      request: {
        method: 'GET',
        path: '/plants',
        query: { limit, after, tag, name, order },
      } satisfies RequestOf<'listPlants'>,
      signal,
      read(answer) {
        const plants = readPlants(answer)
        const next = toHeader(answer, 'Link' satisfies HeaderOf<'listPlants'>)
        after = next === null ? undefined : (toNext(next) ?? plants.at(-1)?.id)
        isLast = after === undefined
        return plants
      },
    })
  }

  async function loadPlants(): Promise<readonly StoredPlant[] | undefined> {
    while (!isLast) {
      const plants = await loadPage()
      if (plants.length > 0) return plants
    }
    return undefined
  }

  return iteratePages(loadPlants, signal, () => {})
}

/** The id after which the next page begins. */
function toNext(link: string): bigint | undefined {
  const [, after] = /[?&]after=(-?\d{1,19})\b/.exec(link) ?? []
  return after === undefined ? undefined : BigInt(after)
}

/** Refuses a text that no address can hold. No plant has one. */
function requireWellFormed(option: string, text: string | undefined): void {
  if (text === undefined || (typeof text === 'string' && text.isWellFormed())) return
  throw new TypeError(`${option} must be a string without lone surrogates.`)
}
