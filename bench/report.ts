import { cpus, totalmem } from 'node:os'
import type { Form } from './lab.ts'
import { type Findings, judge, type Target, toTable, toText } from './section.ts'

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
  const parts = [...findings.values()].map(({ title, text }) => `## ${title}\n\n${text}`)
  const targets = [...findings.values()].flatMap((found) => found.targets)
  const head = `The ${form} form, on ${describeMachine()}.`
  return [head, `## Targets\n\n${describeTargets(targets)}`, ...parts].join('\n\n')
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
