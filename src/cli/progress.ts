import { Presets, SingleBar } from 'cli-progress'
import type { Terminal } from './terminal.ts'

/** Shows how far a long command is. */
export interface Progress {
  /** How many are done, and which part of the whole that is, as far as it is known. */
  report(count: number, part: Part | undefined): void
  /** Writes a line of its own, without disturbing the bar. */
  note(text: string): void
  stop(): void
}

export interface Part {
  readonly done: number
  readonly total: number
}

/** How often the bar moves, and how often there is a line where there is no terminal. */
const defaultIntervals = { barMs: 100, lineMs: 5_000 }

/** A bar on a terminal, a line every few seconds elsewhere, nothing when quiet was asked for. */
export function startProgress(
  title: string,
  things: string,
  { errors }: Terminal,
  { quiet = false }: { readonly quiet?: boolean | undefined },
  { barMs, lineMs } = defaultIntervals,
): Progress {
  const startedAt = performance.now()
  const bar = errors.isTTY && !quiet ? newBar(errors) : undefined
  let isBarShown = false
  let shownAt = startedAt

  function show(count: number, part: Part | undefined): void {
    if (bar === undefined) {
      errors.write(`${title}: ${describe(count, things, part, startedAt)}\n`)
      return
    }
    const { done, total } = part ?? { done: 0, total: 1 }
    const text = describe(count, things, part, startedAt)
    if (isBarShown) bar.update(done, { text })
    else bar.start(total, done, { title, text })
    isBarShown = true
  }

  return {
    report(count, part) {
      const now = performance.now()
      if (quiet || now - shownAt < (bar === undefined ? lineMs : barMs)) return
      shownAt = now
      show(count, part)
    },

    note(text) {
      // The bar stands on the last line: it is wiped, and drawn again under the note.
      if (isBarShown) errors.write('\r\u001b[K')
      errors.write(`${text}\n`)
    },

    stop() {
      if (isBarShown) bar?.stop()
    },
  }
}

function newBar(stream: Terminal['errors']): SingleBar {
  const options = {
    stream,
    format: '{title} {bar} {text}',
    hideCursor: true,
    clearOnComplete: true,
  }
  return new SingleBar(
    options as ConstructorParameters<typeof SingleBar>[0],
    Presets.shades_classic,
  )
}

/** How far it is, in words: `1,200,000 plants, 240,000/s, 80 %, 2 s left`. */
function describe(
  count: number,
  things: string,
  part: Part | undefined,
  startedAt: number,
): string {
  const seconds = (performance.now() - startedAt) / 1000
  const words = [`${toText(count)} ${things}`, `${toText(Math.round(count / seconds))}/s`]
  if (part !== undefined && part.done > 0) {
    const share = Math.min(1, part.done / part.total)
    words.push(
      `${Math.floor(share * 100)} %`,
      `${toDuration((seconds * (1 - share)) / share)} left`,
    )
  }
  return words.join(', ')
}

/** A number with its thousands set apart. */
export function toText(count: number): string {
  return count.toLocaleString('en')
}

function toDuration(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
