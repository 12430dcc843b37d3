import { notOurs, parse, readAs, toNewPlantJson } from './json.ts'
import { type Link, run, untilAborted } from './request.ts'
import type { ImportOptions, ImportReport, NewPlant, Refusal } from './types.ts'

/** A part is small enough to be kept for a retry, and large enough to share its transactions. */
const partCharacters = 1024 * 1024
/** The service ends an import that has refused 100,000 lines, and would drop the rest of a part. */
const partLines = 50_000
const maxRefused = 1_000

/**
 * Imports plants in parts, one after the other, because the order of two plants with one id
 * matters. A request with a streamed body could not be sent again, and browsers have none.
 */
export async function importPlants(
  link: Link,
  plants: Iterable<NewPlant> | AsyncIterable<NewPlant>,
  options: ImportOptions,
): Promise<ImportReport> {
  let report = emptyReport
  let part: string[] = []
  let characters = 0

  async function send(): Promise<void> {
    report = addReports(report, await importPart(link, part.join('\n'), options))
    part = []
    characters = 0
    options.onProgress?.(report)
  }

  const { signal } = options
  signal?.throwIfAborted()
  for await (const plant of signal ? itemsUntilAborted(plants, signal) : plants) {
    const line = toLine(plant, report.lines + part.length + 1)
    part.push(line)
    characters += line.length
    if (characters >= partCharacters || part.length >= partLines) await send()
  }
  if (part.length > 0) await send()
  return report
}

/** The line of a plant. The error of an id that is not a bigint names its place in the source. */
function toLine(plant: NewPlant, place: number): string {
  try {
    return toNewPlantJson(plant)
  } catch (cause) {
    throw new TypeError(`Plant ${place} of the import: ${(cause as Error).message}`, { cause })
  }
}

/** The items of a source, until the signal aborts: the source is then closed without waiting. */
async function* itemsUntilAborted<Item>(
  source: Iterable<Item> | AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncGenerator<Awaited<Item>, undefined> {
  const items =
    Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  const close = async () => items.return?.()
  const take = async () => {
    const { done, value } = await items.next()
    return { done, value: await value }
  }
  let isOpen = true
  try {
    for (;;) {
      signal.throwIfAborted()
      isOpen = false
      const { done, value } = await untilAborted(take(), signal)
      if (done) return
      isOpen = true
      yield value
    }
  } finally {
    if (signal.aborted) close().catch(() => {})
    else if (isOpen) await untilAborted(close(), signal)
  }
}

function importPart(
  link: Link,
  body: string,
  { onConflict, signal }: ImportOptions,
): Promise<ImportReport> {
  return run<ImportReport>(link, {
    request: {
      method: 'POST',
      path: '/plants.ndjson',
      query: { 'on-conflict': onConflict },
      body,
      mediaType: 'application/x-ndjson',
    },
    signal,
    read: (answer) => readAs(answer, [200], () => readReport(answer.text)),
  })
}

const countNames = [
  'lines',
  'stored',
  'alreadyThere',
  'replaced',
  'skipped',
  'conflicts',
  'invalid',
  'refusedInAll',
] as const

type Counts = Readonly<Record<(typeof countNames)[number], number>>

function toCounts(toCount: (name: keyof Counts) => number): Counts {
  return Object.fromEntries(countNames.map((name) => [name, toCount(name)])) as Counts
}

/** The report of an import without plants. */
export const emptyReport: ImportReport = { ...toCounts(() => 0), refused: [] }

function addReports(sum: ImportReport, part: ImportReport): ImportReport {
  const moved = part.refused.map((refusal) => ({ ...refusal, line: refusal.line + sum.lines }))
  return {
    ...toCounts((name) => sum[name] + part[name]),
    refused: [...sum.refused, ...moved].slice(0, maxRefused),
  }
}

/** The members of a report that the client knows. Throws if one has the wrong type. */
function readReport(text: string): ImportReport {
  const report = parse(text, ({ refused }: ImportReport) => refused)
  const { refused } = report
  if (!Array.isArray(refused) || refused.length > maxRefused) throw notOurs()
  if (!countNames.every((name) => Number.isInteger(report[name]))) throw notOurs()
  return { ...toCounts((name) => report[name]), refused: refused.map(pickRefusal) }
}

function pickRefusal({ line, id, error, message }: Refusal): Refusal {
  return { line, ...(id !== undefined && { id }), error, message }
}
