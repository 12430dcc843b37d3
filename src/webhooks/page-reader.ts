import type { JournalPage, Store } from '../store/store.ts'

type Page = JournalPage | 'gone' | 'off'

/** Reads pages of the journal. Receivers at the same place share one. */
export interface PageReader {
  read(after: string): Promise<Page>
  /** The journal has changed: pages that were read before no longer count. */
  forget(): void
}

const pageEvents = 256
const maxPages = 4

export function buildPageReader(store: Pick<Store, 'readJournal'>): PageReader {
  const pages = new Map<string, Promise<Page>>()

  return {
    read(after) {
      const known = pages.get(after)
      if (known !== undefined) return known
      if (pages.size >= maxPages) pages.delete(pages.keys().next().value as string)
      const page = store.readJournal(after, pageEvents)
      pages.set(after, page)
      page.catch(() => pages.delete(after))
      return page
    },
    forget: () => pages.clear(),
  }
}
