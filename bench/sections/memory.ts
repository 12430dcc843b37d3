/** Memory of the service after many creates and a walk through all plants, twice. */
import { join } from 'node:path'
import { readRss } from '../cpu.ts'
import type { Lab, Server } from '../lab.ts'
import { seedCount, token, toNextPath, toRequests } from '../requests.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { servePlantStore } from '../serve.ts'
import { stopSystems } from '../systems.ts'

const counts = { short: 50_000, full: 400_000 }
const nodeOptions = ['--max-old-space-size=96', '--max-semi-space-size=8']
const maxMb = 125
const maxGrowthMb = 20

export const memory: Section = { name: 'memory', measure }

async function measure(lab: Lab): Promise<Findings> {
  const count = counts[lab.form]
  const urls = {
    SQLite: `sqlite:${join(lab.folder, 'memory.db')}`,
    PostgreSQL: await lab.newDatabase('memory'),
  }
  const found: { engine: string; startMb: number; firstMb: number; secondMb: number }[] = []
  for (const [engine, url] of Object.entries(urls)) {
    const server = await servePlantStore(lab, url, { nodeOptions })
    const startMb = readRss(server.pid)
    const firstMb = await fillAndWalk(lab, server, count)
    const secondMb = await fillAndWalk(lab, server, count)
    found.push({ engine, startMb, firstMb, secondMb })
    await stopSystems(lab, [{ server }])
  }
  const creates = `${count.toLocaleString('en')} creates`
  const head = [nodeOptions.join(' '), 'start, MB', `${creates} and a walk, MB`, 'twice, MB']
  const rows = found.map(({ engine, startMb, firstMb, secondMb }) => [
    `Plant Store, ${engine}`,
    ...[startMb, firstMb, secondMb].map(toText),
  ])
  const unit = ' MB'
  return {
    title: 'Memory',
    text: toTable(head, rows),
    values: found,
    targets: found.flatMap(({ engine, firstMb, secondMb }) => [
      {
        title: `memory, ${engine}: after ${creates} and a walk`,
        value: firstMb,
        bound: { max: maxMb },
        unit,
      },
      {
        title: `memory, ${engine}: growth in the second half`,
        value: secondMb - firstMb,
        bound: { max: maxGrowthMb },
        unit,
      },
    ]),
  }
}

async function fillAndWalk(lab: Lab, { port, pid }: Server, count: number): Promise<number> {
  lab.progress(`memory: ${count.toLocaleString('en')} creates`)
  const { create } = toRequests(seedCount)
  await lab.drive({ port, connections: 64, cycle: [create], requests: count })
  lab.progress('memory: a walk through all plants')
  const headers = { Authorization: `Bearer ${token}` }
  let path: string | undefined = '/plants'
  while (path !== undefined) {
    const answer: Response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
    await answer.arrayBuffer()
    path = toNextPath(answer.headers.get('link') ?? undefined)
  }
  return readRss(pid)
}
