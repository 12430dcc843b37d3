import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import type { Form } from './lab.ts'
import { plotFigures } from './plot.ts'
import { type Figure, type Findings, judge, type Target, toTable, toText } from './section.ts'

/** The findings of each section that was measured, by its name. */
export type Found = ReadonlyMap<string, Findings>

const preface = `# Benchmark tables

\`npm run bench\` writes this page, with \`--full\` or \`--write\`; [performance.md](../performance.md) explains it.`
/** What a run writes into performance.md stands between these lines. */
const [begin, end] = ['<!-- begin of measured figures -->', '<!-- end of measured figures -->']

/** The results of a run, for programs. */
export function buildReport(form: Form, found: Found): object {
  return {
    form,
    machine: describeMachine(),
    sections: Object.fromEntries([...found].map(([name, { values }]) => [name, values])),
    targets: toTargets(found).map((target) => ({ ...target, verdict: judge(target) })),
  }
}

/** The same results for people. */
export function toMarkdown(form: Form, found: Found): string {
  const parts = [...found.values()].map(({ title, text }) => `## ${title}\n\n${text}`)
  const figures = toFigures(found)
  return [
    `The ${form} form, on ${describeMachine()}.`,
    ...(figures.length > 0 ? [describeFigures(figures)] : []),
    `## Targets\n\n${describeTargets(toTargets(found))}`,
    ...parts,
  ].join('\n\n')
}

/** Writes the tables, the plot, and the first table of performance.md. */
export function writeDocs(
  form: Form,
  found: Found,
  docs = new URL('../docs/', import.meta.url),
): void {
  const folder = new URL('performance/', docs)
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL('tables.md', folder), `${preface}\n\n${toMarkdown(form, found)}\n`)
  const figures = toFigures(found)
  writeFileSync(new URL('figures.svg', folder), plotFigures('Plant Store and its peers', figures))
  const page = new URL('performance.md', docs)
  const [before, , after] = readFileSync(page, 'utf8').split(
    new RegExp(`(?<=${begin}\n)(.*)(?=${end})`, 's'),
  )
  if (after === undefined) throw new Error(`performance.md has no place for the figures: ${begin}`)
  const machine = `Measured on ${describeMachine()}.`
  writeFileSync(page, `${before}\n${describeFigures(figures)}\n\n${machine}\n\n${after}`)
}

function toFigures(found: Found): Figure[] {
  return [...found.values()].flatMap(({ figures = [] }) => figures)
}

function toTargets(found: Found): Target[] {
  return [...found.values()].flatMap(({ targets }) => targets)
}

/** A row for each system. */
function describeFigures(figures: readonly Figure[]): string {
  const systems = new Set(figures.flatMap(({ values }) => Object.keys(values)))
  const rows = [...systems].map((system) => [
    system,
    ...figures.map(({ values }) => (system in values ? toText(values[system] ?? 0) : '–')),
  ])
  return toTable(['', ...figures.map(({ title }) => title)], rows)
}

function describeTargets(targets: readonly Target[]): string {
  const rows = targets.map((target) => {
    const { title, value, bound, unit = '', refused } = target
    const limit = 'max' in bound ? `≤ ${bound.max}` : `≥ ${bound.min}`
    return [title, `${toText(value)}${unit}`, `${limit}${unit}`, refused ?? judge(target)]
  })
  return toTable(['', 'found', 'target', ''], rows)
}

function describeMachine(): string {
  const [first] = cpus()
  const cores = `${cpus().length} cores (${first?.model.trim()})`
  const memory = `${Math.round(totalmem() / 1024 ** 3)} GB`
  return `${cores}, ${memory}, Node.js ${process.versions.node}, ${process.platform}`
}
