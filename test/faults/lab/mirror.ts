import { createHash } from 'node:crypto'
import { PlantStore } from '../../../client/index.ts'
import { releaseAfterTest } from '../../support/release.ts'
import { waitUntil } from '../../support/wait.ts'
import { token } from './service-process.ts'

/** A change as the journal tells it. */
export interface FeedEvent {
  readonly position: string
  readonly type: 'plant.created' | 'plant.replaced' | 'plant.deleted'
  readonly plant: { readonly id: bigint; readonly name: string }
}

/** What a copy held at a position where it must be true: a digest that tells two copies apart. */
export interface Seen {
  readonly position: string
  readonly digest: bigint
  /** Whether it came there by a change, and not by a list. */
  readonly isChange: boolean
}

/** A client that keeps a copy over every restart of its service. */
export type Mirror = ReturnType<typeof startMirror>

type Change = Pick<FeedEvent, 'plant'> & { readonly type: FeedEvent['type'] | 'plant' }

/** A copy of plants, as the recipe of docs/client.md keeps it. */
function newCopy() {
  const plants = new Map<bigint, bigint>()
  let digest = 0n
  return {
    clear(): void {
      plants.clear()
      digest = 0n
    },
    /** Applies a change, and answers the digest of all plants. */
    apply({ type, plant: { id, name } }: Change): bigint {
      const own = createHash('sha256').update(`${id} ${name}`).digest().readBigUInt64LE()
      digest ^= plants.get(id) ?? 0n
      plants.delete(id)
      if (type === 'plant.deleted') return digest
      plants.set(id, own)
      digest ^= own
      return digest
    },
    digest: () => digest,
  }
}

/**
 * Mirrors whichever service there is: from now on, or from a position at which there were no plants.
 * The pages of its list are small, so that changes come between them.
 */
export function startMirror(toUrl: () => string, after?: string) {
  const seen: Seen[] = []
  const copy = newCopy()
  const controller = new AbortController()
  const { signal } = controller
  const origin = toUrl()
  const begun = Promise.withResolvers<void>()
  const store = new PlantStore({
    ...{ url: origin, token, retries: 100 },
    async fetch(input, init) {
      const url = String(input).replace(origin, toUrl()).replace('limit=1000', 'limit=3')
      const answer = await fetch(url, init)
      if (answer.status === 503) begun.resolve()
      return answer
    },
  })

  async function follow(): Promise<void> {
    let isSynced = after !== undefined
    for await (const change of store.mirror({ after, signal })) {
      if (change.type === 'reset') {
        copy.clear()
        isSynced = false
        continue
      }
      const isChange = change.type !== 'synced'
      if (isChange) copy.apply(change)
      else isSynced = true
      if (!isSynced || !('position' in change)) continue
      seen.push({ position: change.position, digest: copy.digest(), isChange })
      begun.resolve()
    }
  }

  const following = follow().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  releaseAfterTest(async () => {
    controller.abort()
    await following
  })
  return {
    seen: seen as readonly Seen[],
    /** Resolves when it is synced for the first time, or told to try again later. */
    begun: begun.promise,
    /** Resolves when it is at this position. */
    waitFor: (position: string | undefined) =>
      waitUntil(() => seen.at(-1)?.position === position, `the mirror is at ${position}`),
  }
}

/** What is wrong with what a mirror has seen, given what the journal has in the end. */
export function judgeMirror(seen: readonly Seen[], events: readonly FeedEvent[]) {
  const copy = newCopy()
  const truth = new Map(events.map((event) => [event.position, copy.apply(event)]))
  const order = new Map(events.map(({ position }, index) => [position, index]))
  // A mirror of an empty store is at a position before every change.
  const toIndex = (position = '') => order.get(position) ?? -1
  return {
    /** Where another change came than the next one. */
    skipped: seen.filter(
      ({ position, isChange }, index) =>
        isChange && toIndex(position) !== toIndex(seen[index - 1]?.position) + 1,
    ).length,
    /** Where the copy was not what the store was. */
    untrue: seen.filter(({ position, digest }) => (truth.get(position) ?? 0n) !== digest).length,
  }
}
