/**
 * The benchmark: every system on this machine, driven in turn, and what is promised of ours.
 *
 *   npm run bench                        under 2 minutes
 *   npm run bench -- --full              under 20 minutes; writes docs/performance.md and its plots
 *   npm run bench -- --only throughput   one section; also of the full form
 *   npm run bench -- --write             writes the docs after the short form, too
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { requireProc } from './cpu.ts'
import { openLab } from './lab.ts'
import { installPeers } from './peers.ts'
import { buildReport, toMarkdown, writeDocs } from './report.ts'
import type { Findings, Section } from './section.ts'
import { growth } from './sections/growth.ts'
import { memory } from './sections/memory.ts'
import { profile } from './sections/profile.ts'
import { slowDisk } from './sections/slow-disk.ts'
import { start } from './sections/start.ts'
import { throughput } from './sections/throughput.ts'
import { transfer } from './sections/transfer.ts'

const sections: readonly Section[] = [
  throughput,
  profile,
  start,
  growth,
  memory,
  slowDisk,
  transfer,
]
const secondsBetweenLogs = 10
let nextLogAt = 0
const short = ['throughput', 'start']

const { values } = parseArgs({
  options: { full: { type: 'boolean' }, only: { type: 'string' }, write: { type: 'boolean' } },
})
const form = values.full ? 'full' : 'short'
const chosen = sections.filter(({ name }) =>
  values.only ? name === values.only : form === 'full' || short.includes(name),
)
if (chosen.length === 0) {
  console.error(`--only takes one of: ${sections.map(({ name }) => name).join(', ')}`)
  process.exit(1)
}

requireProc()
if (chosen.includes(throughput)) installPeers(progress)
const startedAt = performance.now()
const lab = openLab(form, progress)
const findings = new Map<string, Findings>()
for (const section of chosen) findings.set(section.name, await section.measure(lab))
await lab.close()
progress('')
const markdown = toMarkdown(form, findings)
console.log(markdown)

const results = new URL('results/', import.meta.url)
mkdirSync(results, { recursive: true })
const name = values.only ? `${form}-${values.only}` : form
const report = JSON.stringify(buildReport(form, findings), shorten, 1)
writeFileSync(new URL(`${name}.json`, results), `${report}\n`)
console.log(`\nAs JSON: bench/results/${name}.json.`)
if (values.write || (values.full && !values.only)) {
  writeDocs(markdown, findings)
  console.log('In the docs: docs/performance.md and docs/performance/.')
}
console.log(`Took ${Math.round((performance.now() - startedAt) / 1000)} s.`)
process.exit(0)

/** On a terminal one line, over the one before; in a log a line now and then. */
function progress(text: string): void {
  const seconds = Math.round(performance.now() / 1_000)
  const line = `${String(seconds).padStart(4)} s  ${text}`
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text === '' ? '' : line}`)
  else if (text !== '' && seconds >= nextLogAt) {
    console.error(line)
    nextLogAt = seconds + secondsBetweenLogs
  }
}

function shorten(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}
