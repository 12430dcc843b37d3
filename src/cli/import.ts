import type { Config } from '../config.ts'
import { Failure } from '../contract/errors.ts'
import { type Entry, UnreadableFile } from '../transfer/entry.ts'
import { readPlants } from '../transfer/read.ts'
import { describeCounts, newCounts, openRejects, requireRejectsFile } from './import-report.ts'
import { type OnConflictFlag, type Outcome, openTarget, type TargetFlags } from './import-target.ts'
import { openInput, toFormat } from './input-file.ts'
import { expectManyShortLives } from './memory.ts'
import { CommandFailed, exitCodes, explainFile } from './outcome.ts'
import { startProgress } from './progress.ts'
import { requireGoingOn, stopOnSignal } from './signals.ts'
import type { Terminal } from './terminal.ts'

export interface ImportFlags extends TargetFlags {
  readonly format?: string
  readonly onConflict: OnConflictFlag
  readonly rejects?: string
  readonly quiet?: boolean
}

/** So many plants, or so much text, go into the store in one step. */
const batchPlants = 2_000
const batchCharacters = 256 * 1024
const maxUnderWay = 2

/** Brings the plants of a file into the store. Run again, it finds what is there already, and goes on. */
export async function importPlants(
  file: string,
  flags: ImportFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  expectManyShortLives()
  const format = toFormat(file, flags.format)
  const signal = stopOnSignal()
  const input = await openInput(file, terminal, signal)
  if (flags.rejects !== undefined) requireRejectsFile(flags.rejects)
  const target = await openTarget(flags, config, signal)
  const rejects = await openRejects(flags.rejects)
  const counts = newCounts()
  const startedAt = performance.now()
  const progress = startProgress('import', 'lines', terminal, flags)
  const underWay: Batch[] = []
  let reached = 0

  /** Waits for the oldest batch and counts what became of its lines. */
  async function settle(): Promise<void> {
    const { entries, outcomes } = underWay.shift() as Batch
    const plantOutcomes = (await outcomes).values()
    for (const entry of entries) {
      const outcome = entry.plant === undefined ? toInvalid(entry) : plantOutcomes.next().value
      if (outcome === undefined) throw new Error('the store gave no outcome for a plant')
      counts[outcome.is]++
      if (outcome.reason !== undefined) await rejects.add(entry, outcome.reason, progress)
      reached = entry.line
    }
    progress.report(reached, input.part())
  }

  async function bringIn(): Promise<void> {
    for await (const entries of toBatches(readPlants(input.chunks, format))) {
      const plants = entries.flatMap(({ plant }) => plant ?? [])
      const ids = new Set(plants.map(({ id }) => id))
      while (mustWait(ids, underWay)) await settle()
      if (signal.aborted) break
      const outcomes = target.put(plants)
      // It is listened to when its turn comes.
      outcomes.catch(() => {})
      underWay.push({ entries, ids, outcomes })
    }
    while (underWay.length > 0) await settle()
  }

  try {
    await bringIn()
  } catch (error) {
    await Promise.allSettled(underWay.map(({ outcomes }) => outcomes))
    // Whoever stops it also stops what it is waiting for.
    if (!signal.aborted) throw explain(error, file, reached)
  } finally {
    progress.stop()
    await rejects.close()
    await target.close()
  }
  const seconds = (performance.now() - startedAt) / 1000
  const rejected = counts.conflict + counts.invalid
  if (!flags.quiet || signal.aborted || rejected > 0) {
    const options = { isWhole: !signal.aborted, rejects: flags.rejects }
    terminal.errors.write(describeCounts(counts, seconds, options))
  }
  requireGoingOn(signal, `Stopped after line ${reached}. ${goOn}`)
  if (rejected > 0) throw new CommandFailed(exitCodes.data, '')
}

const goOn = 'Run the same command again to go on: what is stored already is recognised.'

/** Lines that are on their way into the store. */
interface Batch {
  readonly entries: readonly Entry[]
  readonly ids: ReadonlySet<bigint>
  readonly outcomes: Promise<Outcome[]>
}

/** Two batches with an id in common are not under way together: their order decides whose plant it is. */
function mustWait(ids: ReadonlySet<bigint>, underWay: readonly Batch[]): boolean {
  const isFull = underWay.length === maxUnderWay
  return isFull || underWay.some((batch) => !batch.ids.isDisjointFrom(ids))
}

function toInvalid({ reason }: Entry): Outcome {
  return { is: 'invalid', reason: reason ?? '' }
}

async function* toBatches(groups: AsyncIterable<Entry[]>): AsyncGenerator<Entry[]> {
  let batch: Entry[] = []
  let characters = 0
  for await (const entries of groups) {
    for (const entry of entries) {
      batch.push(entry)
      characters += entry.text.length
      if (batch.length < batchPlants && characters < batchCharacters) continue
      yield batch
      batch = []
      characters = 0
    }
  }
  if (batch.length > 0) yield batch
}

function explain(error: unknown, file: string, reached: number): unknown {
  const behind = `Nothing behind line ${reached} was taken.`
  if (error instanceof UnreadableFile) {
    return new CommandFailed(
      exitCodes.data,
      reached === 0 ? error.message : `${error.message}. ${behind}`,
    )
  }
  if (error instanceof Failure) {
    return new CommandFailed(exitCodes.inputOutput, `${behind} ${error.message} ${goOn}`)
  }
  if (error instanceof CommandFailed && reached > 0) {
    return new CommandFailed(error.exitCode, `${error.message} ${behind} ${goOn}`)
  }
  if (error instanceof Error && 'syscall' in error) {
    const message = `Cannot read ${file}: ${explainFile(error)}. ${behind}`
    return new CommandFailed(exitCodes.inputOutput, message, { cause: error })
  }
  return error
}
