/**
 * Time from the start of a process to its first answer: the executable against this checkout, in
 * turn, on one empty store. Build the executable first.
 *
 *   npm run build:executable && npx node bench/experiments/executable.ts [--rounds 20]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from '../figures.ts'

const root = join(import.meta.dirname, '..', '..')
const executable = join(root, 'dist', 'plant-store')
const programs = {
  checkout: [process.execPath, '--disable-sigusr1', join(root, 'bin', 'plant-store.js')],
  executable: [executable],
} as const
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '20' } } })
const rounds = Number(values.rounds)
const folder = mkdtempSync(join(tmpdir(), 'plant-store-starts-'))
try {
  const ratios: number[] = []
  const times = { checkout: [] as number[], executable: [] as number[] }
  // Round 0 is not counted: it makes the store and fills the caches.
  for (let round = 0; round <= rounds; round++) {
    const order = round % 2 === 0 ? ['checkout', 'executable'] : ['executable', 'checkout']
    const ms: Record<string, number> = {}
    for (const name of order as (keyof typeof programs)[]) {
      ms[name] = await measureStart(programs[name])
      if (round > 0) times[name].push(ms[name])
    }
    if (round > 0) ratios.push((ms.executable ?? 0) / (ms.checkout ?? 1))
  }
  console.log({
    megabytes: Math.round(statSync(executable).size / 1e6),
    checkoutMs: Math.round(median(times.checkout)),
    executableMs: Math.round(median(times.executable)),
    ratio: Number(median(ratios).toFixed(2)),
  })
} finally {
  rmSync(folder, { recursive: true })
}

async function measureStart([file, ...args]: readonly string[]): Promise<number> {
  const startedAt = performance.now()
  const child = spawn(file as string, [...args, 'serve', '--port', '0'], {
    cwd: folder,
    env: { PATH: process.env.PATH, PLANT_STORE_TOKEN: 'a-token-for-this-experiment' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let output = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    output += text
    const [, url] = /address {3}(http:\S+)\n/.exec(output) ?? []
    if (url === undefined) continue
    await (await fetch(`${url}/readyz`)).text()
    break
  }
  const ms = performance.now() - startedAt
  child.kill('SIGINT')
  await once(child, 'exit')
  return ms
}
