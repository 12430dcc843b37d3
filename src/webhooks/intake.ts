import type { Receiver } from '../store/receivers.ts'
import type { JournalEvent, JournalPage } from '../store/store.ts'
import { buildWindow, type Entry, type Window } from './window.ts'

/** Reads the changes for one receiver out of the journal. */
export interface Intake extends Pick<Window, 'progress' | 'size'> {
  /** Reads a page, if there may be one and no other is being read. After "changes", read again. */
  read(): Promise<'changes' | 'gap' | 'nothing'>
  /** There may be more in the journal. */
  wake(): void
}

export interface IntakeOptions {
  readonly receiver: Receiver
  readonly readPage: (after: string) => Promise<JournalPage | 'gone' | 'off'>
  /** Whether the store keeps this change already, beside the journal. */
  readonly isKept: (position: string) => boolean
  readonly onChange: (event: JournalEvent, entry: Entry) => void
}

export function buildIntake({ receiver, readPage, isKept, onChange }: IntakeOptions): Intake {
  const types = new Set<string>(receiver.types)
  const window = buildWindow(receiver.progress.position)
  /** Finished by the process that delivered before. */
  const finished = new Set(receiver.progress.ahead)
  let cursor = receiver.progress.position
  let mayHaveMore = true
  let isReading = false

  async function read(): Promise<'changes' | 'gap' | 'nothing'> {
    if (isReading || !mayHaveMore) return 'nothing'
    isReading = true
    mayHaveMore = false
    try {
      const page = await readPage(cursor)
      if (page === 'off') return 'nothing'
      if (page === 'gone') return await skipGap()
      for (const event of page.events) take(event)
      // A commit during the read has set this again.
      mayHaveMore ||= page.events.length > 0
      return mayHaveMore ? 'changes' : 'nothing'
    } catch (error) {
      mayHaveMore = true
      throw error
    } finally {
      isReading = false
    }
  }

  /** Goes on from the oldest change that is kept. */
  async function skipGap(): Promise<'gap' | 'nothing'> {
    mayHaveMore = true
    const page = await readPage('oldest')
    if (typeof page === 'string') return 'nothing'
    cursor = page.begin
    window.skip(cursor)
    return 'gap'
  }

  function take(event: JournalEvent): void {
    const { position, type } = event
    cursor = position
    if (!types.has(type)) window.skip(position)
    else if (finished.delete(position) || isKept(position)) window.add(position, 'closed')
    else onChange(event, window.add(position, 'open'))
  }

  return {
    read,
    wake() {
      mayHaveMore = true
    },
    progress: window.progress,
    size: window.size,
  }
}
