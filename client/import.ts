import { notOurs, readAs } from './answers.ts'
import { parse, toNewPlantJson } from './json.ts'
import type { Link } from './options.ts'
import { run, untilAborted } from './request.ts'
import type { ImportOptions, ImportReport, NewPlant, Refusal } from './types.ts'

/** A part is small enough to be kept for a retry, and large enough to share its transactions. */
const partCharacters = 1024 * 1024
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
    if (characters >= partCharacters) await send()
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
    read: (answer, lost) =>
      readAs(
        answer,
        [200],
        () => pickReport(parse(answer.text, (report: ImportReport) => report.refused)),
        lost,
      ),
  })
}

/** The members of a report that the client knows. Throws if one has the wrong type. */
function pickReport(report: ImportReport): ImportReport {
  const { lines, stored, alreadyThere, replaced, skipped, conflicts, invalid, refusedInAll } =
    report
  const counts = {
    lines,
    stored,
    alreadyThere,
    replaced,
    skipped,
    conflicts,
    invalid,
    refusedInAll,
  }
  const { refused } = report
  const isOurs = Object.values(counts).every(isCount) && Array.isArray(refused)
  if (!isOurs || refused.length > maxRefused) throw notOurs()
  return { ...counts, refused: refused.map(pickRefusal) }
}

function pickRefusal({ line, id, error, message }: Refusal): Refusal {
  const isOurs = isCount(line) && isCount(error) && typeof message === 'string'
  if (!isOurs || (id !== undefined && typeof id !== 'bigint')) throw notOurs()
  return id === undefined ? { line, error, message } : { line, id, error, message }
}

/** Whether this is a number of the contract, all of which are int32. */
function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31
}

/** The report of an import without plants. */
export const emptyReport: ImportReport = {
  lines: 0,
  stored: 0,
  alreadyThere: 0,
  replaced: 0,
  skipped: 0,
  conflicts: 0,
  invalid: 0,
  refused: [],
  refusedInAll: 0,
}

function addReports(sum: ImportReport, part: ImportReport): ImportReport {
  const moved = part.refused.map((refusal) => ({ ...refusal, line: refusal.line + sum.lines }))
  return {
    lines: sum.lines + part.lines,
    stored: sum.stored + part.stored,
    alreadyThere: sum.alreadyThere + part.alreadyThere,
    replaced: sum.replaced + part.replaced,
    skipped: sum.skipped + part.skipped,
    conflicts: sum.conflicts + part.conflicts,
    invalid: sum.invalid + part.invalid,
    refused: [...sum.refused, ...moved].slice(0, maxRefused),
    refusedInAll: sum.refusedInAll + part.refusedInAll,
  }
}
