/**
 * The benchmark: drives every system in turn on this machine and compares Plant Store to the rest.
 *
 *   npm run bench                        about 2 minutes
 *   npm run bench -- --full              about 20 minutes; writes docs/performance/
 *   npm run bench -- --only throughput   one section; combines with --full
 *   npm run bench -- --write             writes docs/performance/ after the short form, too
 *   npm run bench -- --pocketbase PATH   compares with PocketBase, too
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { installPackages } from '../test/support/packages.ts'
import { requireProc } from './cpu.ts'
import { openLab } from './lab.ts'
import { buildReport, toMarkdown, writeDocs } from './report.ts'
import type { Findings, Section } from './section.ts'
import { growth } from './sections/growth.ts'
import { memory } from './sections/memory.ts'
import { slowDisk } from './sections/slow-disk.ts'
import { start } from './sections/start.ts'
import { throughput } from './sections/throughput.ts'

const sections: readonly Section[] = [throughput, start, memory, growth, slowDisk]
const shortSections: readonly Section[] = [throughput, start]
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
progress('installing into bench/node_modules, if the lockfile has changed (npm ci)')
await installPackages(import.meta.dirname)
const startedAt = performance.now()
const found = new Map<string, Findings>()
const failed: string[] = []
for (const section of chosen) await measure(section)
progress('')
console.log(toMarkdown(form, found))

const results = new URL('results/', import.meta.url)
mkdirSync(results, { recursive: true })
const name = values.only ? `${form}-${values.only}` : form
const report = JSON.stringify(buildReport(form, found), shorten, 1)
writeFileSync(new URL(`${name}.json`, results), `${report}\n`)
console.log(`\nAs JSON: bench/results/${name}.json.`)
if ((values.full || values.write) && !values.only && failed.length === 0) {
  writeDocs(form, found)
  console.log('As Markdown, with the plot: docs/performance.md and docs/performance/.')
}
console.log(`Took ${Math.round((performance.now() - startedAt) / 1000)} s.`)
for (const reason of failed) console.error(reason)
process.exit(failed.length > 0 ? 1 : 0)

function chooseSections(): readonly Section[] {
  if (values.only === undefined) return form === 'full' ? sections : shortSections
  const one = sections.filter((section) => section.name === values.only)
  if (one.length > 0) return one
  console.error(`--only takes one of: ${sections.map((section) => section.name).join(', ')}`)
  process.exit(1)
}

/** A section has processes of its own: if it fails, the others are measured all the same. */
async function measure(section: Section): Promise<void> {
  const lab = openLab(form, progress, values.pocketbase)
  try {
    found.set(section.name, await section.measure(lab))
  } catch (error) {
    failed.push(`The section ${section.name} failed: ${(error as Error).stack}`)
  } finally {
    await lab.close()
  }
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
