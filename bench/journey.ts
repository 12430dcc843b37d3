/**
 * The files of `src` that a warm create, get and list pass through, with the functions that ran, by
 * V8's precise coverage.
 *
 *   npx node bench/journey.ts sqlite
 *   npx node bench/journey.ts postgres
 */
import { Session } from 'node:inspector/promises'
import { startPlantStore } from '../src/testing.ts'
import { newCluster, query, startServer } from '../test/support/postgres.ts'

const root = new URL('../src/', import.meta.url).href
const server = process.argv[2] === 'postgres' ? await startServer(await newCluster()) : undefined
if (server) await query(server.toUrl('postgres'), 'CREATE DATABASE plants')
const service = await startPlantStore({ database: server?.toUrl('plants') })
const url = `${service.url}/plants`
const headers = { Authorization: `Bearer ${service.token}`, 'Content-Type': 'application/json' }
let id = 0
const toBody = () => JSON.stringify({ id: ++id, name: 'Monstera deliciosa', tag: 'indoor' })
const requests = {
  create: () => fetch(url, { method: 'POST', headers, body: toBody() }),
  get: () => fetch(`${url}/1`, { headers }),
  list: () => fetch(url, { headers }),
}
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true })
for (const [name, send] of Object.entries(requests)) {
  const runs: string[][] = []
  while (runs.length < 100) {
    await takeFiles()
    const answer = await send()
    if (!answer.ok) throw new Error(await answer.text())
    await answer.text()
    runs.push(await takeFiles())
  }
  // A timer may have run during the others.
  const [files = []] = runs.sort((one, other) => one.length - other.length)
  console.log(`${name}: ${files.length} files\n  ${files.sort().join('\n  ')}`)
}
await service.stop()
await server?.stop()

/** The files with functions that ran since the last call. */
async function takeFiles(): Promise<string[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const own = result.filter((script) => script.url.startsWith(root))
  return own.flatMap(({ url, functions }) => {
    const ran = functions.filter(({ ranges }) => ranges.some(({ count }) => count > 0))
    const names = ran.map(({ functionName }) => functionName || '()')
    return names.length === 0 ? [] : `${url.slice(root.length)}: ${names.join(' ')}`
  })
}
