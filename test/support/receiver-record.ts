import type { Delivery, Progress, Receiver, Saved, Taken } from '../../src/store/receivers.ts'

/** The progress of a receiver that was just added. */
export const nothingSent: Progress = {
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

/** What a sender takes for a receiver, with these members instead of the usual ones. */
export function newTaken(members: Partial<Taken> & Pick<Taken, 'id' | 'epoch'>): Taken {
  const nothing = { before: 'start', position: 'start', ahead: [], deliveries: [] }
  return { ...nothing, gap: undefined, ...members }
}

/** What a sender saves of a receiver, with these members instead of the usual ones. */
export function newSaved(members: Partial<Saved> & Pick<Saved, 'id' | 'epoch'>): Saved {
  return { times: nothingSent, done: [], failed: [], pause: undefined, ...members }
}

/** A delivery that waits. */
export function newDelivery(members: Partial<Delivery> = {}): Delivery {
  return {
    position: 'p1',
    type: 'plant.created',
    at: 5,
    plantId: 7n,
    attempts: 1,
    dueAt: 1_000,
    lastStatus: 500,
    lastError: 'answered 500',
    body: '{"id":7,"name":"Aloe","tag":"x"}',
    ...members,
  }
}
