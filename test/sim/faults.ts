import type { Profile } from './conditions.ts'

/**
 * A fault to put into the source. The simulation must find each of them, so they are its controls.
 * A fault whose text is no longer in its file ends the run.
 */
export interface Fault {
  readonly name: string
  readonly file: string
  readonly text: string
  readonly broken: string
  /** The conditions under which it shows soonest. */
  readonly profile: Profile
}

export const faults: readonly Fault[] = [
  {
    name: 'an end of the journal before changes that are there',
    file: 'src/store/postgres/journal.ts',
    text: `throw unsettled()
    await sleep(pollMs)
  }
  return selectEnd(sql, newest, `,
    broken: `break
    await sleep(pollMs)
  }
  return selectEnd(sql, 0, `,
    profile: 'slow commits',
  },
  {
    name: 'an oldest change that counts as settled after a while',
    file: 'src/store/postgres/journal.ts',
    text: "from !== 'oldest' || rows[0]?.isFirst === true",
    broken: "from !== 'oldest' || polls++ > 1",
    profile: 'slow commits',
  },
  {
    name: 'a sequence that stays behind its rows',
    file: 'src/store/postgres/prepare.ts',
    text: 'const isMoved = await raiseSequence(sql)',
    broken: 'const isMoved = false',
    profile: 'moved database',
  },
  {
    name: 'a take that does not compare the position',
    file: 'src/store/postgres/receivers.ts',
    text: '        AND position = $' + '{before}\n',
    broken: '',
    profile: 'late takes',
  },
  {
    name: 'a worker whose epoch is not checked',
    file: 'src/webhooks/sender.ts',
    text: 'if (epochs.get(worker.id) !== worker.epoch) drop(worker)',
    broken: 'if (!epochs.has(worker.id)) drop(worker)',
    profile: 'lost leases',
  },
  {
    name: 'a session that keeps the epochs of the one before it',
    file: 'src/store/postgres/receivers.ts',
    text: 'const isFirst = !claimedOn.has(sql)',
    broken: 'const isFirst = false',
    profile: 'failovers',
  },
  {
    name: 'an epoch that is used again after a failover',
    file: 'src/store/postgres/receivers.ts',
    text: 'greatest(lease_epoch + 1, now)',
    broken: 'lease_epoch + 1',
    profile: 'failovers',
  },
  {
    name: 'a lease that lasts while its machine is suspended',
    file: 'src/webhooks/sender.ts',
    text: 'Math.max(performance.now() - claimedAt.monotonic, Date.now() - claimedAt.wall)',
    broken: 'performance.now() - claimedAt.monotonic',
    profile: 'suspended machines',
  },
  {
    name: 'a mirror that waits for an end that a failover has undone',
    file: 'client/events.ts',
    text: '          await readNext(patient, end, signal)\n',
    broken: '          continue\n',
    profile: 'undone changes',
  },
]
