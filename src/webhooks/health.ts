import type { Verdict } from './verdict.ts'

/** Undefined where nothing is new. */
export type HealthNews = 'failing' | 'works again' | undefined

/** Notices when a receiver begins to fail, and when it works again. */
export interface Health {
  /** Notes what becomes of a change after an attempt. Returns what is new. */
  note(position: string, fate: Verdict['fate']): HealthNews
}

/**
 * A receiver works again when it takes a change and none has to be retried: one that refuses a few
 * plants and takes all others is not reported again and again.
 */
export function buildHealth(failingSince: number | undefined): Health {
  const retried = new Set<string>()
  let isFailing = failingSince !== undefined

  return {
    note(position, fate) {
      if (fate === 'again') retried.add(position)
      else retried.delete(position)
      const wasFailing = isFailing
      if (fate === 'again' || fate === 'failed') isFailing = true
      else if (fate === 'done' && retried.size === 0) isFailing = false
      if (isFailing === wasFailing) return undefined
      return isFailing ? 'failing' : 'works again'
    },
  }
}
