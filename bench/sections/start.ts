/** Time from the start of a process to its first answer. */
import { join } from 'node:path'
import { median } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { serveBareFastify, servePlantStore } from '../serve.ts'
import { alternateStarts, type Starter } from '../starts.ts'
import { fillStore } from '../stores.ts'

const rounds = { short: 5, full: 15 }
const maxRatioToFastify = 1.8

export const start: Section = { name: 'start', measure }

async function measure(lab: Lab): Promise<Findings> {
  const starters = await prepare(lab)
  const times = await alternateStarts(lab, starters, rounds[lab.form])
  const [bare = [], empty = []] = times
  const toRatio = (values: readonly number[]) =>
    median(values.map((value, round) => value / (bare[round] ?? Number.NaN)))
  const rows = starters.map(({ name }, index) => {
    const values = times[index] ?? []
    return [name, toText(median(values)), toRatio(values).toFixed(2)]
  })
  return {
    title: 'Start',
    text: toTable(['', 'ms to the first answer', '/ bare Fastify'], rows),
    values: starters.map(({ name }, index) => ({ name, ms: times[index] })),
    targets: [
      {
        title: 'start, empty store on SQLite / bare Fastify',
        value: toRatio(empty),
        bound: { max: maxRatioToFastify },
      },
    ],
  }
}

async function prepare(lab: Lab): Promise<Starter[]> {
  const empty = `sqlite:${join(lab.folder, 'empty.db')}`
  await fillStore(empty, 0, lab.progress)
  const database = await lab.newDatabase('empty')
  await fillStore(database, 0, lab.progress)
  let count = 0
  return [
    { name: 'bare Fastify, one route', start: () => serveBareFastify(lab) },
    { name: 'Plant Store, SQLite, empty store', start: () => servePlantStore(lab, empty) },
    {
      name: 'Plant Store, SQLite, new store',
      start: () => servePlantStore(lab, `sqlite:${join(lab.folder, `new-${count++}.db`)}`),
    },
    { name: 'Plant Store, PostgreSQL, empty store', start: () => servePlantStore(lab, database) },
  ]
}
