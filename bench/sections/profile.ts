/** Where the time of a create goes: a CPU profile of ours on SQLite, at 64 connections. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CpuProfile, drawFlame, sumByRoom, toFrames } from '../flame.ts'
import type { Lab } from '../lab.ts'
import { seedCount, toRequests } from '../requests.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { seed, serveOurs } from '../systems.ts'

const forMs = 6_000
const maxWaits = 100
/** What took less is not in the table. */
const leastShare = 0.005

export const profile: Section = { name: 'profile', measure }

async function measure(lab: Lab): Promise<Findings> {
  lab.progress('a profile of creates')
  const folder = join(lab.folder, 'profile')
  const options = ['--cpu-prof', '--cpu-prof-interval=200', `--cpu-prof-dir=${folder}`]
  const url = `sqlite:${join(lab.folder, 'profiled.db')}`
  const served = await serveOurs(lab, url, { options })
  const requests = toRequests(seedCount, 200)
  await seed(lab, { served, requests })
  const cycle = [requests.create]
  const driven = await lab.drive({ port: served.port, connections: 64, cycle, forMs })
  await lab.forget(served.port)
  process.kill(served.pid, 'SIGTERM')
  const root = toFrames(await readProfile(folder))
  const rooms = sumByRoom(root).filter(([, us]) => us >= leastShare * root.totalUs)
  const rows = rooms.map(([room, us]) => [
    room,
    toText(us / driven.requests),
    `${((us / root.totalUs) * 100).toFixed(0)} %`,
  ])
  return {
    title: 'Where the time of a create goes',
    text: `${toTable(['by itself, the start included', 'µs a create', 'share'], rows)}\n\nA profile counts the time in which the disk syncs as that of the store, though no CPU works then.`,
    values: rows,
    targets: [],
    plots: { 'flame-of-creates': drawFlame('Creates on SQLite, 64 connections', root) },
  }
}

/** Node.js writes it when the process ends. */
async function readProfile(folder: string): Promise<CpuProfile> {
  for (let waits = 0; waits < maxWaits; waits++) {
    await sleep(100)
    const [file] = listFiles(folder)
    if (file === undefined) continue
    try {
      return JSON.parse(readFileSync(join(folder, file), 'utf8'))
    } catch {
      // It is being written.
    }
  }
  throw new Error('the service left no profile')
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
