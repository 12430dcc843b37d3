/** From the start of a process to its first answer. */
import { join } from 'node:path'
import { median, toFigure } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { alternateStarts, type Starter } from '../starts.ts'
import { fillStore } from '../stores.ts'
import { serveOurs, startBareFastify } from '../systems.ts'

const rounds = { short: 5, full: 15 }

export const start: Section = { name: 'start', measure }

async function measure(lab: Lab): Promise<Findings> {
  const starters = await prepare(lab)
  const times = await alternateStarts(lab, starters, rounds[lab.form])
  const [bare = [], empty = []] = times
  const ratioTo = (values: number[]) =>
    median(values.map((value, round) => value / (bare[round] ?? Number.NaN)))
  const rows = starters.map(({ name }, index) => {
    const { median: middle, spread } = toFigure(times[index] ?? [])
    return [
      name,
      `${toText(middle)} ±${spread.toFixed(0)} %`,
      ratioTo(times[index] ?? []).toFixed(2),
    ]
  })
  return {
    title: 'Start',
    text: toTable(['', 'ms to the first answer', 'of bare Fastify'], rows),
    values: starters.map(({ name }, index) => ({ name, ms: times[index] })),
    targets: [
      {
        title: 'start: an empty store on SQLite / bare Fastify',
        value: ratioTo(empty),
        bound: { most: 1.8 },
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
    { name: 'bare Fastify, one route', start: () => startBareFastify(lab) },
    { name: 'Plant Store, SQLite, an empty store', start: () => serveOurs(lab, empty) },
    {
      name: 'Plant Store, SQLite, no store yet',
      start: () => serveOurs(lab, `sqlite:${join(lab.folder, `new-${count++}.db`)}`),
    },
    { name: 'Plant Store, PostgreSQL, an empty store', start: () => serveOurs(lab, database) },
  ]
}
