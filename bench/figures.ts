import type { Measure, Series } from './slices.ts'

/** The middle of what the rounds say, and how far the middle half of them lies apart, in per cent. */
export interface Figure {
  readonly median: number
  readonly spread: number
}

export function toFigure(values: readonly number[]): Figure {
  const middle = median(values)
  return {
    median: middle,
    spread: ((quantile(values, 0.75) - quantile(values, 0.25)) / middle) * 100,
  }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}

/** How two systems compare: the median of what each round says, because a round disturbs both alike. */
export function ratio(one: Series, other: Series, measure: Measure): number {
  const others = other.rounds[measure]
  return median(one.rounds[measure].map((value, round) => value / (others[round] ?? Number.NaN)))
}

/** What a cell of a table shows, for whoever reads it. */
export function describeCells(rounds: number, other: string): string {
  return `A cell is the median of ${rounds} rounds, ± how far the middle half of them lies apart, and in brackets the median of the rounds' ratios to what was found ${other}.`
}

/**
 * Whether the load was the bottleneck: it used a whole core while the system had time left. What it did not send cannot
 * say how much the system can do.
 */
export function isGeneratorBound({ generatorShare, systemShare }: Series): boolean {
  return median(generatorShare) > 0.95 && median(systemShare) < 0.9
}
