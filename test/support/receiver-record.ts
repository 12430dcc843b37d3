import type { KeptDelivery, Progress, Receiver, SavedProgress } from '../../src/store/receivers.ts'

const nothingSent: Progress = {
  position: 'start',
  ahead: [],
  lastSuccessAt: undefined,
  lastFailureAt: undefined,
  lastFailure: undefined,
  failingSince: undefined,
}

/** A receiver as a store keeps it, with these members instead of the usual ones. */
export function newReceiver(members: Partial<Receiver> = {}): Receiver {
  return {
    id: 'whk_1',
    url: 'http://127.0.0.1:1/',
    types: ['plant.created'],
    secrets: { current: 'whsec_MQ==', previous: undefined, previousUntil: undefined },
    state: 'active',
    reason: undefined,
    createdAt: 1,
    progress: nothingSent,
    ...members,
  }
}

/** The progress that a sender saves, with these members instead of the usual ones. */
export function newSaved(members: Partial<SavedProgress> & Pick<SavedProgress, 'id' | 'epoch'>) {
  const usual = { progress: nothingSent, kept: [], done: [], pause: undefined, gap: undefined }
  return { ...usual, ...members }
}

/** A delivery that waits. */
export function newDelivery(members: Partial<KeptDelivery> = {}): KeptDelivery {
  return {
    position: 'p1',
    type: 'plant.created',
    at: 5,
    plantId: 7n,
    attempts: 1,
    dueAt: 1_000,
    lastStatus: 500,
    lastError: 'answered 500',
    plant: { id: 7n, name: 'Aloe', tag: 'x' },
    ...members,
  }
}
