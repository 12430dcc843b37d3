import type { Lab } from './lab.ts'

/** What has to come out, for the project to say what it says. */
export interface Target {
  readonly title: string
  readonly value: number
  readonly bound: { readonly most: number } | { readonly least: number }
  readonly unit?: string
  /** Why the value says nothing, if it does not. */
  readonly refused?: string
}

/** What a section of the benchmark answers: Markdown for people, values for programs. */
export interface Findings {
  readonly title: string
  readonly text: string
  readonly values: unknown
  readonly targets: readonly Target[]
  /** Plots, by the name of their file. */
  readonly plots?: Readonly<Record<string, string>>
}

export interface Section {
  readonly name: string
  measure(lab: Lab): Promise<Findings>
}

export type Verdict = 'reached' | 'not reached' | 'refused'

export function judge({ value, bound, refused }: Target): Verdict {
  if (refused !== undefined) return 'refused'
  const isReached = 'most' in bound ? value <= bound.most : value >= bound.least
  return isReached ? 'reached' : 'not reached'
}

/** A table in Markdown, its columns aligned for those who read it in a terminal. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, ...[title, ...rows.map((row) => row[column] ?? '')].map((cell) => cell.length)),
  )
  const toLine = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => pad(cell, widths[column] ?? 0, column)).join(' | ')} |`
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  )
  return [toLine(head), toLine(rule), ...rows.map(toLine)].join('\n')
}

function pad(cell: string, width: number, column: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width)
}

/** A number with as many digits as say something. */
export function toText(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(value >= 10 ? 1 : 2)
}
