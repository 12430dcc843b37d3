import type { Measure, Series } from './slices.ts'

/** From these shares of a core on, the generator is busy and the system is not. */
const minGeneratorShare = 0.95
const maxSystemShare = 0.9

/** The interquartile range as a share of the median. */
export function toSpread(values: readonly number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values)
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

/** Compares two systems by the median of the per-round ratios: noise in a round hits both alike. */
export function ratio(one: Series, other: Series, measure: Measure): number {
  return median(toRatios(one, other, measure))
}

/** The ratios of one system to another, one for each round. */
export function toRatios(one: Series, other: Series, measure: Measure): number[] {
  const others = other.rounds[measure]
  return one.rounds[measure].map((value, round) => value / (others[round] ?? Number.NaN))
}

/** How far the rounds of these series scatter. */
export function describeSpread(series: readonly Series[]): string {
  const toPercent = (measure: Measure) => {
    const spreads = series.map(({ rounds }) => toSpread(rounds[measure]))
    return `${Math.round(median(spreads) * 100)} %`
  }
  const rounds = series[0]?.rounds.cpuUs.length ?? 0
  return `Figures are medians of ${rounds} rounds, ratios the medians of the per-round ratios.
The interquartile range is typically ${toPercent('perSecond')} of the median for requests/s
and ${toPercent('cpuUs')} for CPU time.`
}

/** Whether the generator, not the system, limited the throughput: then the rate proves nothing. */
export function isGeneratorBound({ generatorShare, systemShare }: Series): boolean {
  return median(generatorShare) > minGeneratorShare && median(systemShare) < maxSystemShare
}
