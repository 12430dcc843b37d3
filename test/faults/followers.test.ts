import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { it } from 'node:test'
import { type Engine, engines, postgres } from '../support/engines.ts'
import { query } from '../support/postgres.ts'
import { waitUntil } from '../support/wait.ts'
import { startLoad } from './lab/load.ts'
import { scale } from './lab/scale.ts'
import { token } from './lab/service-process.ts'
import { openTrial, type Trial } from './lab/trial.ts'

const rounds = scale(1, 20)

/** What is done to services, of which the first gets the writes. */
type Harm = (trial: Trial, database: string) => Promise<void>

const harms: readonly [title: string, services: number, harm: Harm, only?: Engine][] = [
  [
    'the receiver breaks off and comes back',
    1,
    async ({ arrivals, suffer, receiver }) => {
      for (let round = 0; round < rounds; round++) {
        await arrivals(30)
        await suffer(() => receiver.restart())
      }
    },
  ],
  [
    'the process that delivers is stopped, and continued when another delivers',
    2,
    async ({ services, urls, arrivals, suffer }, database) => {
      for (let round = 0; round < rounds; round++) {
        const [{ child: stopped } = assert.fail(), other = assert.fail()] =
          round % 2 === 0 ? services : services.toReversed()
        urls[0] = other.url
        await arrivals(30)
        await suffer(async () => {
          await stopBetweenWrites(stopped, database)
          await arrivals(60)
        })
        await suffer(async () => {
          stopped.kill('SIGCONT')
          await arrivals(30)
        })
      }
    },
  ],
  [
    'the clock is set back',
    1,
    async ({ services, arrivals, suffer, restart, setClockBack }) => {
      await arrivals(30)
      await setClockBack(0)
      await arrivals(60)
      // The lease of the dead process ends an hour later, by the clock of the next.
      await suffer(async () => {
        await restart(0)
        await setClockBack(0)
        services[0]?.child.kill('SIGUSR2')
        await arrivals(60)
      })
    },
  ],
  [
    'a process is stopped inside a commit, while another one writes and mirrors begin',
    2,
    async ({ services, history, writes, suffer, follow }, database) => {
      const [{ child: stopped } = assert.fail(), other = assert.fail()] = services
      for (let round = 0; round < rounds; round++) {
        await writes(30)
        await suffer(async () => {
          const stop = () => stopInsideCommit(stopped, database)
          await waitUntil(stop, 'the process is stopped inside a commit')
          const load = startLoad(history, { urls: [other.url], token, writers: 4, readers: 1 })
          await Promise.all([follow(1), writes(30)])
          stopped.kill('SIGCONT')
          await writes(30)
          await load.stop()
        })
      }
    },
    postgres,
  ],
]

for (const engine of engines) {
  for (const [title, services, harm, only = engine] of harms) {
    if (only !== engine) continue
    it(`mirrors and webhooks on ${engine.name} have every change in order, though ${title}`, async (test) => {
      const database = await engine.newUrl()
      const usual = { clients: { readers: 0 }, leases: 'short' } as const
      const trial = await openTrial({ ...usual, database, services })
      trial.urls.length = 1
      await harm(trial, database)
      await trial.requireClean(test)
    })
  }
}

/** Stops a process while it does not hold the lock of the database, which nobody could take over. */
async function stopBetweenWrites(child: ChildProcess, url: string): Promise<void> {
  if (!url.startsWith('sqlite:')) {
    child.kill('SIGSTOP')
    return
  }
  using db = new DatabaseSync(url.replace('sqlite:', ''), { timeout: 1_000 })
  for (;;) {
    child.kill('SIGSTOP')
    await waitUntil(() => hasStopped(child), 'the process has stopped')
    try {
      db.exec('BEGIN IMMEDIATE; ROLLBACK')
      return
    } catch {
      child.kill('SIGCONT')
    }
  }
}

/**
 * Stops a process, the only one that writes. Lets it go on and answers false unless one of its
 * transactions has a number of the journal, and does not commit.
 */
async function stopInsideCommit(child: ChildProcess, url: string): Promise<boolean> {
  child.kill('SIGSTOP')
  await waitUntil(() => hasStopped(child), 'the process has stopped')
  const holders = (state: string) =>
    query(
      url,
      `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
       WHERE datname = current_database() AND mode = 'RowExclusiveLock'
       AND relation = 'plant_store.journal_seq'::regclass AND state = '${state}'`,
    )
  await waitUntil(async () => (await holders('active')).length === 0, 'the server waits')
  if ((await holders('idle in transaction')).length > 0) return true
  child.kill('SIGCONT')
  return false
}

/** Whether every thread has stopped: one inside of a system call stops at its end. */
function hasStopped({ pid }: ChildProcess): boolean {
  const states = globSync(`/proc/${pid}/task/*/stat`).map((path) => readFileSync(path, 'utf8'))
  return states.every((state) => /^\d+ \(.*\) T/.test(state))
}
