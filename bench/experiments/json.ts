/**
 * The cost of judging hostile bodies, each in processes of its own that have judged usual bodies
 * before: CPU time of all threads for the first body and for a later one, and the memory that the
 * first one takes. The least of three processes counts, because other programs disturb the rest.
 * Then the CPU time of usual bodies.
 *
 *   npx node bench/experiments/json.ts [a part of a title]
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { NewPlant } from '../../src/contract/shapes.ts'
import { decodeBody } from '../../src/http/body.ts'
import { buildShapeReader } from '../../src/json/shape.ts'
import { bombs } from '../../test/faults/lab/bombs.ts'
import { requireProc } from '../cpu.ts'
import { median } from '../figures.ts'

const figures = ['firstMs', 'laterMs', 'memoryMb'] as const
type Cost = Record<(typeof figures)[number], number>

const processes = 3
const laterRounds = 11
const usualRounds = 50_000
const usual = {
  'in our order': '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}',
  'in another order': '{"name":"Monstera deliciosa","tag":"indoor","id":1}',
  'with an escape': '{"id":1,"name":"Monstera \\"deliciosa\\"","tag":"indoor"}',
  'with other members':
    '{"id":1,"name":"Monstera deliciosa","height":12.5,"where":{"room":"hall","shelf":3}}',
}
const usualBodies = Object.values(usual).map((body) => Buffer.from(body))
const readPlant = buildShapeReader(NewPlant)

requireProc()
const [first, second] = process.argv.slice(2)
if (first === '--judge') process.stdout.write(JSON.stringify(await measureBomb(String(second))))
else if (first === '--usual') measureUsual()
else measureAll(first ?? '')

function measureAll(part: string): void {
  const costs: Cost[] = []
  console.log('  first   later  memory  body')
  for (const { title } of bombs.filter((bomb) => bomb.title.includes(part))) {
    const runs = Array.from({ length: processes }, () => JSON.parse(runSelf('--judge', title)))
    const cost = combine(runs, Math.min)
    printRow(cost, title)
    costs.push(cost)
  }
  printRow(combine(costs, Math.max), 'the worst of each')
  process.stdout.write(runSelf('--usual'))
}

function combine(costs: readonly Cost[], pick: (...values: number[]) => number): Cost {
  const entries = figures.map((figure) => [figure, pick(...costs.map((cost) => cost[figure]))])
  return Object.fromEntries(entries)
}

function printRow({ firstMs, laterMs, memoryMb }: Cost, title: string): void {
  const [one, other, memory] = [firstMs, laterMs, memoryMb].map((value) => value.toFixed(1))
  console.log(`${one?.padStart(5)} ms ${other?.padStart(4)} ms ${memory?.padStart(4)} MB  ${title}`)
}

function runSelf(...args: string[]): string {
  const { stdout, stderr } = spawnSync(process.execPath, [import.meta.filename, ...args], {
    encoding: 'utf8',
  })
  if (stderr !== '') throw new Error(stderr)
  return stdout
}

async function measureBomb(title: string): Promise<Cost> {
  const bytes = bombs.find((bomb) => bomb.title === title)?.toBody() as Buffer
  for (let round = 0; round < 1_000; round++) usualBodies.forEach(judge)
  await nextTurn()
  // Resets the peak that /proc reports as VmHWM.
  writeFileSync('/proc/self/clear_refs', '5')
  const before = readStatusMb('VmRSS')
  const firstMs = measureCpuMs(() => judge(bytes))
  const memoryMb = Math.max(0, readStatusMb('VmHWM') - before)
  const laterMs = median(
    Array.from({ length: laterRounds }, () => measureCpuMs(() => judge(bytes))),
  )
  return { firstMs, laterMs, memoryMb }
}

function measureUsual(): void {
  for (const [spelling, body] of Object.entries(usual)) {
    const bytes = Buffer.from(body)
    const judgeMany = () => {
      for (let round = 0; round < usualRounds; round++) judge(bytes)
    }
    judgeMany()
    const ms = median(Array.from({ length: laterRounds }, () => measureCpuMs(judgeMany)))
    const ns = Math.round((ms * 1e6) / usualRounds)
    console.log(`${String(ns).padStart(5)} ns  a usual body ${spelling}`)
  }
}

function judge(bytes: Buffer): void {
  try {
    readPlant(decodeBody(bytes))
  } catch {
    // Half of the bodies are refused; the tests say which.
  }
}

function measureCpuMs(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

function readStatusMb(field: string): number {
  const status = readFileSync('/proc/self/status', 'latin1')
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024
}
