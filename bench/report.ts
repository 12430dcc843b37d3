import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import type { Form } from './lab.ts'
import { type Findings, judge, type Target, toTable, toText } from './section.ts'

/** The results of a run, for programs. */
export interface Report {
  readonly form: Form
  readonly machine: string
  readonly sections: Readonly<Record<string, unknown>>
  readonly targets: readonly (Target & { readonly verdict: string })[]
}

const preface = `# Benchmark tables

\`npm run bench -- --full\` writes this page; [performance.md](../performance.md) explains it.`

export function buildReport(form: Form, findings: ReadonlyMap<string, Findings>): Report {
  const targets = [...findings.values()].flatMap((found) => found.targets)
  return {
    form,
    machine: describeMachine(),
    sections: Object.fromEntries([...findings].map(([name, { values }]) => [name, values])),
    targets: targets.map((target) => ({ ...target, verdict: judge(target) })),
  }
}

/** The same results for people. */
export function toMarkdown(form: Form, findings: ReadonlyMap<string, Findings>): string {
  const parts = [...findings.values()].map(({ title, text, plots = {} }) =>
    [`## ${title}`, ...Object.keys(plots).map(toImage), text].join('\n\n'),
  )
  const targets = [...findings.values()].flatMap((found) => found.targets)
  const head = `The ${form} form, on ${describeMachine()}.`
  const table = targets.length > 0 ? [`## Targets\n\n${describeTargets(targets)}`] : []
  return [head, ...table, ...parts].join('\n\n')
}

/** Writes the tables and the plots into docs/performance/. The prose beside it is never touched. */
export function writeDocs(
  markdown: string,
  findings: ReadonlyMap<string, Findings>,
  folder = new URL('../docs/performance/', import.meta.url),
): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL('tables.md', folder), `${preface}\n\n${markdown}\n`)
  for (const { plots = {} } of findings.values()) {
    for (const [name, svg] of Object.entries(plots)) {
      writeFileSync(new URL(`${name}.svg`, folder), svg)
    }
  }
}

function toImage(name: string): string {
  return `![${name.replaceAll('-', ' ')}](${name}.svg)`
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
