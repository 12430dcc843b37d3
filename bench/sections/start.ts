/** Time from the start of a process to its first answer. */
import { join } from 'node:path'
import { median } from '../figures.ts'
import type { Lab, Server } from '../lab.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { servePlantStore, toPath } from '../serve.ts'
import { fillStore } from '../stores.ts'

const rounds = { short: 7, full: 25 }
const maxRatioToFastify = 0.8

export const start: Section = { name: 'start', measure }

async function measure(lab: Lab): Promise<Findings> {
  const starters = await prepare(lab)
  const names = Object.keys(starters)
  const times = await alternateStarts(lab, Object.values(starters), rounds[lab.form])
  const [bare = [], onSqlite = []] = times
  const toRatio = (values: readonly number[]) =>
    median(values.map((value, round) => value / (bare[round] ?? Number.NaN)))
  const rows = names.map((name, index) => {
    const values = times[index] ?? []
    return [name, toText(median(values)), toRatio(values).toFixed(2)]
  })
  const medians = names.map((name, index) => [name, median(times[index] ?? [])])
  return {
    title: 'Start',
    text: toTable(['a store without plants', 'ms to the first answer', '/ bare Fastify'], rows),
    values: Object.fromEntries(names.map((name, index) => [name, times[index]])),
    targets: [
      {
        title: 'start: Plant Store, SQLite / bare Fastify',
        value: toRatio(onSqlite),
        bound: { max: maxRatioToFastify },
      },
    ],
    figures: [{ title: 'start, ms', values: Object.fromEntries(medians) }],
  }
}

async function prepare(lab: Lab): Promise<Record<string, () => Promise<Server>>> {
  const file = `sqlite:${join(lab.folder, 'empty.db')}`
  await fillStore(file, 0, lab.progress)
  const database = await lab.newDatabase('empty')
  await fillStore(database, 0, lab.progress)
  return {
    'bare Fastify, one route': () => lab.serve({ args: [toPath('systems/bare-fastify.js')] }),
    'Plant Store, SQLite': () => servePlantStore(lab, file),
    'Plant Store, PostgreSQL': () => servePlantStore(lab, database),
  }
}

/** Starts programs in turn; returns the milliseconds until each reported that it was ready. */
async function alternateStarts(
  lab: Lab,
  starters: readonly (() => Promise<Server>)[],
  rounds: number,
): Promise<number[][]> {
  const times = starters.map((): number[] => [])
  // Round 0 is not counted: it fills the disk cache and the cache of compiled code.
  for (let round = 0; round <= rounds; round++) {
    lab.progress(`starts: round ${round} of ${rounds}`)
    for (let turn = 0; turn < starters.length; turn++) {
      const index = (round + turn) % starters.length
      const startedAt = performance.now()
      const server = await starters[index]?.()
      if (server === undefined) continue
      const headers = { Connection: 'close' }
      const answer = await fetch(`http://127.0.0.1:${server.port}/readyz`, { headers })
      if (!answer.ok) throw new Error(`not ready: ${answer.status}`)
      if (round > 0) times[index]?.push(performance.now() - startedAt)
      await server.stop()
    }
  }
  return times
}
