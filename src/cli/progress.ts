import type { Terminal } from './terminal.ts'

/** Shows how far a long command has come. */
export interface Progress {
  /** Tells how many things are done, and how much of the whole that is where the whole is known. */
  report(count: number, part: Part | undefined): void
  /** Writes a line of its own above the bar. */
  note(line: string): void
  stop(): void
}

export interface Part {
  readonly done: number
  readonly total: number
}

/** The time between two updates of the bar, and between two lines where there is no terminal. */
const defaultIntervals = { barMs: 100, lineMs: 5_000 }

const maxBarWidth = 40
const minBarWidth = 5
const defaultColumns = 80
const wipe = '\r\u001b[K'

/** Shows a bar on a terminal, a line every few seconds elsewhere, and nothing with `--quiet`. */
export function startProgress(
  title: string,
  things: string,
  { errors, tell }: Terminal,
  { quiet = false }: { readonly quiet?: boolean | undefined },
  { barMs, lineMs } = defaultIntervals,
): Progress {
  const startedAt = performance.now()
  const isBar = errors.isTTY === true
  let shownAt = startedAt
  /** The line of the bar, as it is on the terminal now. */
  let bar = ''

  function show(count: number, part: Part | undefined): void {
    const text = describe(count, things, part, startedAt)
    if (isBar) {
      bar = toBarLine(title, text, part, errors.columns || defaultColumns)
      errors.write(wipe + bar)
    } else tell(`${title}: ${text}`)
  }

  return {
    report(count, part) {
      const now = performance.now()
      if (quiet || now - shownAt < (isBar ? barMs : lineMs)) return
      shownAt = now
      show(count, part)
    },

    note(line) {
      if (bar !== '') errors.write(wipe)
      tell(line)
      if (bar !== '') errors.write(bar)
    },

    stop() {
      if (bar !== '') errors.write(wipe)
      bar = ''
    },
  }
}

/**
 * One line that leaves the last column free: a line that fills the terminal wraps, and a wipe
 * misses its first half.
 */
function toBarLine(title: string, text: string, part: Part | undefined, columns: number): string {
  const width = Math.min(maxBarWidth, columns - title.length - text.length - 5)
  if (part === undefined || width < minBarWidth) return `${title} ${text}`.slice(0, columns - 1)
  const filled = Math.floor(width * toShare(part))
  return `${title} [${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${text}`
}

/** The state as text: `1,200,000 plants, 240,000/s, 80 %, 2 s left`. */
function describe(
  count: number,
  things: string,
  part: Part | undefined,
  startedAt: number,
): string {
  const seconds = (performance.now() - startedAt) / 1000
  const words = [toCount(count, things), `${formatNumber(Math.round(count / seconds))}/s`]
  if (part !== undefined && part.done > 0) {
    const share = toShare(part)
    words.push(
      `${Math.floor(share * 100)} %`,
      `${toDuration((seconds * (1 - share)) / share)} left`,
    )
  }
  return words.join(', ')
}

function toShare({ done, total }: Part): number {
  return total === 0 ? 1 : Math.min(1, done / total)
}

/** A number of things, named in the plural, or of a unit: `1 plant`, `1,200 plants`, `1 MiB`. */
export function toCount(count: number, things: string): string {
  return `${formatNumber(count)} ${count === 1 ? things.replace(/s$/, '') : things}`
}

/** A number with separators between its thousands. */
export function formatNumber(count: number): string {
  return count.toLocaleString('en')
}

function toDuration(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
