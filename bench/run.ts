/**
 * The benchmark: drives every system in turn on this machine and compares Plant Store to the rest.
 *
 *   npm run bench                        about 2 minutes
 *   npm run bench -- --full              about 23 minutes; writes docs/performance/
 *   npm run bench -- --only throughput   one section; combines with --full
 *   npm run bench -- --write             writes docs/performance/ after any run
 *   npm run bench -- --pocketbase PATH   compares with PocketBase, too
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { requireProc } from './cpu.ts'
import { openLab } from './lab.ts'
import { installPeers } from './peers.ts'
import { buildReport, toMarkdown, writeDocs } from './report.ts'
import type { Findings, Section } from './section.ts'
import { growth } from './sections/growth.ts'
import { journal } from './sections/journal.ts'
import { memory } from './sections/memory.ts'
import { profile } from './sections/profile.ts'
import { slowDisk } from './sections/slow-disk.ts'
import { start } from './sections/start.ts'
import { throughput } from './sections/throughput.ts'
import { transfer } from './sections/transfer.ts'

const sections: readonly Section[] = [
  throughput,
  journal,
  profile,
  start,
  growth,
  memory,
  slowDisk,
  transfer,
]
const shortSections: readonly Section[] = [throughput, journal, start]
const secondsBetweenLogs = 10
let nextLogAt = 0

const { values } = parseArgs({
  options: {
    full: { type: 'boolean' },
    only: { type: 'string' },
    write: { type: 'boolean' },
    pocketbase: { type: 'string' },
  },
})
const form = values.full ? 'full' : 'short'
const chosen = chooseSections()
requireProc()
await installPeers(progress)
const startedAt = performance.now()
const lab = openLab(form, progress, values.pocketbase)
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
  console.log('As Markdown, with the plots: docs/performance/.')
}
console.log(`Took ${Math.round((performance.now() - startedAt) / 1000)} s.`)
process.exit(0)

function chooseSections(): readonly Section[] {
  if (values.only === undefined) return form === 'full' ? sections : shortSections
  const one = sections.filter((section) => section.name === values.only)
  if (one.length > 0) return one
  console.error(`--only takes one of: ${sections.map((section) => section.name).join(', ')}`)
  process.exit(1)
}

/** Shows the current step: one line, overwritten, on a terminal; a line every 10 s elsewhere. */
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
