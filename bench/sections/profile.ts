/** A CPU profile of creates on SQLite over 64 connections. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CpuProfile, drawFlame, sumByRoom, toFrames } from '../flame.ts'
import type { Lab } from '../lab.ts'
import { seedCount, toRequests } from '../requests.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { servePlantStore } from '../serve.ts'
import { seed } from '../systems.ts'

const forMs = 6_000
const pollMs = 100
const maxPolls = 100
/** Parts below this share are left out of the table. */
const minShare = 0.005

export const profile: Section = { name: 'profile', measure }

async function measure(lab: Lab): Promise<Findings> {
  lab.progress('a profile of creates')
  const folder = join(lab.folder, 'profile')
  const nodeOptions = ['--cpu-prof', '--cpu-prof-interval=200', `--cpu-prof-dir=${folder}`]
  const url = `sqlite:${join(lab.folder, 'profiled.db')}`
  const server = await servePlantStore(lab, url, { nodeOptions })
  const requests = toRequests(seedCount, 200)
  await seed(lab, { server, requests })
  const cycle = [requests.create]
  const result = await lab.drive({ port: server.port, connections: 64, cycle, forMs })
  await lab.forget(server.port)
  process.kill(server.pid, 'SIGTERM')
  const root = toFrames(await readProfile(folder))
  const rooms = sumByRoom(root).filter(([, us]) => us >= minShare * root.totalUs)
  const rows = rooms.map(([room, us]) => [
    room,
    toText(us / result.requests),
    `${((us / root.totalUs) * 100).toFixed(0)} %`,
  ])
  const table = toTable(['self time, including the start', 'µs per create', 'share'], rows)
  return {
    title: 'CPU profile of creates',
    text: `${table}\n\nThe profiler counts the wait for a disk sync as time of the store.`,
    values: rows,
    targets: [],
    plots: { 'flame-of-creates': drawFlame('Creates on SQLite, 64 connections', root) },
  }
}

/** Waits for the profile, which Node.js writes when the process ends. */
async function readProfile(folder: string): Promise<CpuProfile> {
  for (let polls = 0; polls < maxPolls; polls++) {
    await sleep(pollMs)
    const [file] = listFiles(folder)
    if (file === undefined) continue
    try {
      return JSON.parse(readFileSync(join(folder, file), 'utf8'))
    } catch {
      // The file is not complete yet.
    }
  }
  throw new Error(`The service wrote no profile within ${(pollMs * maxPolls) / 1_000} s.`)
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
