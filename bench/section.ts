import type { Lab } from './lab.ts'

/** A claim of the project as a number and its bound. */
export interface Target {
  readonly title: string
  readonly value: number
  readonly bound: { readonly max: number } | { readonly min: number }
  readonly unit?: string
  /** The reason why the value means nothing in this run. */
  readonly refused?: string
}

/** One of the figures of the first table and of the plot: a value for each system that has it. */
export interface Figure {
  readonly title: string
  readonly values: Readonly<Record<string, number>>
}

/** The results of one section: Markdown for people, values for programs. */
export interface Findings {
  readonly title: string
  readonly text: string
  readonly values: unknown
  readonly targets: readonly Target[]
  readonly figures?: readonly Figure[]
}

export interface Section {
  readonly name: string
  measure(lab: Lab): Promise<Findings>
}

export type Verdict = 'reached' | 'not reached' | 'refused'

export function judge({ value, bound, refused }: Target): Verdict {
  if (refused !== undefined) return 'refused'
  const isReached = 'max' in bound ? value <= bound.max : value >= bound.min
  return isReached ? 'reached' : 'not reached'
}

/** A Markdown table, with aligned columns for readers in a terminal. */
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

/** A number with three significant digits, or as an integer from 100 on. */
export function toText(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(value >= 10 ? 1 : 2)
}
