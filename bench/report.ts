import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import type { Form } from './lab.ts'
import { type Findings, judge, type Target, toTable, toText } from './section.ts'

/** What follows it in docs/performance.md is written by the benchmark. */
const mark = '<!-- Below: written by npm run bench -- --full -->'

/** Everything that a run found, for programs to read. */
export interface Report {
  readonly form: Form
  readonly machine: string
  readonly sections: Readonly<Record<string, unknown>>
  readonly targets: readonly (Target & { readonly verdict: string })[]
}

export function buildReport(form: Form, findings: ReadonlyMap<string, Findings>): Report {
  const targets = [...findings.values()].flatMap((found) => found.targets)
  return {
    form,
    machine: describeMachine(),
    sections: Object.fromEntries([...findings].map(([name, { values }]) => [name, values])),
    targets: targets.map((target) => ({ ...target, verdict: judge(target) })),
  }
}

/** The same for people, in Markdown. */
export function toMarkdown(form: Form, findings: ReadonlyMap<string, Findings>): string {
  const parts = [...findings.values()].map(({ title, text, plots = {} }) =>
    [`## ${title}`, ...Object.keys(plots).map(toImage), text].join('\n\n'),
  )
  const targets = [...findings.values()].flatMap((found) => found.targets)
  const head = `The ${form} form, on ${describeMachine()}.`
  const table = targets.length > 0 ? [`## Targets\n\n${describeTargets(targets)}`] : []
  return [head, ...table, ...parts].join('\n\n')
}

/** Writes the tables into docs/performance.md, between their marks, and the plots beside it. */
export function writeDocs(markdown: string, findings: ReadonlyMap<string, Findings>): void {
  const docs = new URL('../docs/', import.meta.url)
  const page = new URL('performance.md', docs)
  const [before = ''] = readFileSync(page, 'utf8').split(mark)
  writeFileSync(page, `${before}${mark}\n\n${markdown}\n`)
  mkdirSync(new URL('performance/', docs), { recursive: true })
  for (const { plots = {} } of findings.values()) {
    for (const [name, svg] of Object.entries(plots)) {
      writeFileSync(new URL(`performance/${name}.svg`, docs), svg)
    }
  }
}

function toImage(name: string): string {
  return `![${name.replaceAll('-', ' ')}](performance/${name}.svg)`
}

function describeTargets(targets: readonly Target[]): string {
  const rows = targets.map((target) => {
    const { title, value, bound, unit = '', refused } = target
    const sign = 'most' in bound ? '≤' : '≥'
    const limit = 'most' in bound ? bound.most : bound.least
    return [title, `${toText(value)}${unit}`, `${sign} ${limit}${unit}`, refused ?? judge(target)]
  })
  return toTable(['', 'found', 'target', ''], rows)
}

function describeMachine(): string {
  const [first] = cpus()
  const memory = Math.round(totalmem() / 1024 ** 3)
  return `${cpus().length} cores (${first?.model.trim()}), ${memory} GB, Node.js ${process.versions.node}, ${process.platform}`
}
