/**
 * The conditions of one seed. Each seed has only some of the disturbances: with all at once, most
 * runs would be busy with the same few. Profiles combine those that are dangerous together.
 */
import type { Weather } from './postgres.ts'
import type { Answer, Manners } from './transport.ts'
import type { World } from './world.ts'

const allDisturbances = [
  ...(['stop', 'suspend', 'step a clock', 'kill', 'restart', 'cut', 'fail over'] as const),
  ...(['trim', 'drop', 'operate'] as const),
]

export type Disturbance = (typeof allDisturbances)[number]

const all = 'plant.created plant.replaced plant.deleted'

export type Conditions = ReturnType<typeof chooseAny>

/** Chooses the conditions of a seed: those of a profile, and any others. */
export function chooseConditions(world: World, profile: Profile | undefined): Conditions {
  return { ...chooseAny(world), ...profiles[profile ?? world.oneOf(mix)](world) }
}

function chooseAny({ chance, pick, between, oneOf }: World) {
  const sometimes = (value: number) => (chance(0.5) ? value : 0)
  const receivers = chance(0.6) ? oneOf([[all], [all, all], ['plant.created plant.deleted']]) : []
  const mayBeSuspended = chance(0.5)
  const isMoved: boolean = false
  return {
    /** How long the disturbances last. */
    activeMs: oneOf([between(1_500, 4_000), between(4_000, 10_000)]),
    services: 1 + pick(3),
    writers: 1 + pick(3),
    mirrors: chance(0.6) ? 1 + pick(3) : 0,
    followers: chance(0.4) ? 1 + pick(2) : 0,
    /** The types that each receiver wants. */
    receivers,
    /** Whether the sequence begins behind its rows, as after a logical replication. */
    isMoved,
    standby: oneOf(['synchronous', 'asynchronous'] as const),
    disturbances: allDisturbances.filter(
      (one) =>
        chance(0.4) &&
        (one !== 'suspend' || mayBeSuspended) &&
        (receivers.length > 0 || one !== 'operate') &&
        // A machine whose wall clock is set back while it is suspended has no clock to trust.
        (one !== 'step a clock' || !mayBeSuspended),
    ),
    /** The longest pause between two disturbances, and between two writes of a writer. */
    disturbanceMs: oneOf([400, 1_000, 2_500]),
    writeMs: oneOf([200, 500, 1_000]),
    /** The chance that a writer stalls before it commits, and that a mirror leaves early. */
    stalls: sometimes(0.1),
    leaves: sometimes(0.5),
    /** The chances that a take is late, that a page is late, and that a message takes long. */
    lateTakes: sometimes(0.2),
    latePages: sometimes(0.05),
    lateTravel: sometimes(0.03),
    /** The chance that a statement or an answer breaks its connection. */
    lost: sometimes(0.002),
    /** The chance that a receiver does not just take what it gets. */
    rude: sometimes(between(0.02, 0.2)),
    /** How many deliveries may wait before the journal is not read any more. */
    keptDeliveries: chance(0.5) ? 3 + pick(5) : 8 + pick(30),
    /** How often a delivery is tried before it is given up. */
    attempts: oneOf([60, 60, 3]),
  }
}

export type Profile = keyof typeof profiles

const onlyWebhooks = { receivers: [all], mirrors: 0, followers: 0, stalls: 0 }

const profiles = {
  anything: () => ({}),

  /** Readers of several processes beside transactions that take long, and trims. */
  'slow commits': ({ pick, oneOf }: World): Partial<Conditions> => ({
    ...{ services: 1 + pick(2), receivers: [], mirrors: 1 + pick(2), followers: 1 + pick(2) },
    ...{
      stalls: 0.3,
      leaves: 0.8,
      disturbances: oneOf([['trim'], ['trim', 'stop'], ['stop', 'drop']]),
    },
    ...{ disturbanceMs: 1_000, activeMs: 4_000 },
  }),

  /** Mirrors that are filled while an asynchronous standby takes over. */
  'undone changes': ({ pick, between }: World): Partial<Conditions> => ({
    ...{ services: 1 + pick(2), receivers: [], mirrors: 8, followers: 0, leaves: 0.5 },
    ...{ standby: 'asynchronous', disturbances: ['fail over'], lateTravel: 0.5, writeMs: 60 },
    ...{ disturbanceMs: 2_000, activeMs: between(2_000, 4_000) },
  }),

  /** One process whose takes are late, beside an operator. */
  'late takes': ({ pick, between }: World): Partial<Conditions> => ({
    ...onlyWebhooks,
    ...{ services: 1, disturbances: ['operate'], lateTakes: 0.3, keptDeliveries: 6 + pick(8) },
    ...{ disturbanceMs: 1_000, writeMs: 500, activeMs: between(6_000, 10_000) },
  }),

  /** Processes that stop or lose their connections, and take the leases of each other. */
  'lost leases': ({ pick, between, oneOf }: World): Partial<Conditions> => ({
    ...onlyWebhooks,
    ...{ services: 2 + pick(2), rude: oneOf([0.1, 0.4]), attempts: 60, lateTakes: 0 },
    ...{ disturbances: oneOf([['stop'], ['stop', 'cut'], ['stop', 'fail over']]) },
    ...{ disturbanceMs: 2_500, writeMs: 500, activeMs: between(6_000, 12_000) },
  }),

  failovers: ({ pick, between, oneOf, chance }: World): Partial<Conditions> => ({
    ...onlyWebhooks,
    ...{ services: 1 + pick(2), disturbances: ['fail over'], lateTakes: 0 },
    standby: chance(0.7) ? 'asynchronous' : 'synchronous',
    ...{
      disturbanceMs: oneOf([600, 2_500]),
      writeMs: oneOf([500, 1_500]),
      activeMs: between(2_000, 5_000),
    },
  }),

  /**
   * A database that was moved, and processes that prepare it. A failover could undo the raise of
   * its sequence, for which running processes do not look.
   */
  'moved database': ({ pick, oneOf }: World): Partial<Conditions> => ({
    ...{ isMoved: true, services: 1 + pick(3), mirrors: 1 + pick(2), followers: pick(2) },
    ...{ disturbances: oneOf([[], ['kill', 'restart'], ['stop', 'cut'], ['trim', 'kill']]) },
    ...{ standby: 'synchronous', activeMs: 3_000, disturbanceMs: 1_000 },
  }),

  /** Two processes of which one is suspended while deliveries wait to be retried. */
  'suspended machines': ({ between }: World): Partial<Conditions> => ({
    ...onlyWebhooks,
    ...{ services: 2, disturbances: ['suspend'], rude: 0.4, attempts: 60, lateTakes: 0, lost: 0 },
    ...{ disturbanceMs: 5_000, writeMs: 500, activeMs: between(9_000, 13_000) },
  }),
}

const mix: readonly Profile[] = ['anything', ...(Object.keys(profiles) as Profile[])]

export function chooseWeather(
  { chance, between }: World,
  { lateTakes, latePages, lateTravel, lost, stalls }: Conditions,
  isCalm: () => boolean,
): Weather {
  const isLate = (probability: number) => !isCalm() && chance(probability)
  return {
    isLost: () => isLate(lost),
    isRefused: () => isLate(lost * 20),
    travelMs: () => (isLate(lateTravel) ? between(2, 80) : between(0.05, 1)),
    runMs(text: string) {
      // A take whose caller has given up just before it commits.
      if (/added AS/.test(text) && isLate(lateTakes)) {
        return chance(0.7) ? between(4_990, 5_250) : between(500, 6_500)
      }
      if (/gone AS/.test(text) && isLate(lateTakes / 10)) return between(20, 6_500)
      if (/LATERAL|deliveries/.test(text) && isLate(latePages)) return between(20, 900)
      return chance(0.1) ? between(0, 3) : 0
    },
    commitMs: () => (isLate(stalls / 2) ? between(300, 3_500) : between(0, 2)),
  }
}

export function chooseManners(
  { chance, between, oneOf, newActor }: World,
  { rude, disturbances }: Conditions,
  isCalm: () => boolean,
): Manners {
  const ways: Answer[] = ['taken, but the answer is lost', 'refused', 'refused', 'refused', 'late']
  // Nobody else resumes a receiver that a 410 has paused.
  if (disturbances.includes('operate')) ways.push('gone')
  return {
    actor: newActor('receiver'),
    answer: () => (!isCalm() && chance(rude) ? oneOf(ways) : 'taken'),
    delayMs: () => (!isCalm() && chance(0.05) ? between(2, 300) : between(0.05, 4)),
  }
}
