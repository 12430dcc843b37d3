import { setTimeout as sleep } from 'node:timers/promises'
import { type ImportReport, PlantStoreError } from '../../client/index.ts'
import type { ErrorNumber } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ConflictRule } from '../contract/parameters.ts'
import { maxRefused, type NewPlant } from '../contract/shapes.ts'
import { toJson } from '../json/write.ts'
import type { BatchBounds, Put } from '../transfer/batches.ts'
import type { Outcome } from '../transfer/outcome.ts'
import { CommandFailed, exitCodes } from './exit.ts'
import {
  explainService,
  isUnreachable,
  maxMessageCharacters,
  openClient,
  type Service,
} from './service.ts'

/** Where an import puts its plants. */
export interface Target {
  /** The store or the service, as messages name it. */
  readonly name: string
  readonly bounds: BatchBounds
  readonly put: Put
  close(): Promise<void>
}

/** As many plants as a report can list, so that it names every refused one. */
const bounds = { entries: maxRefused, characters: 256 * 1024 }
/** A service that restarts comes back. An address that has never answered is given up sooner. */
const retries = 8
const retriesOfNew = 3
/** The pause after a 429 on which the client has given up. */
const limitedPauseMs = 250
/** How long the requests in flight may take after the first signal. */
const lastAnswersMs = 5_000
const maxAnswerBytes = 1024 * 1024

/** A running service as the target of an import. */
export function openHttpTarget(service: Service, rule: ConflictRule, stop: AbortSignal): Target {
  const url = service.url.replace(/\/+$/, '')
  const controller = new AbortController()
  const { signal } = controller
  const client = openClient({ ...service, retries, onRetry, fetch: fetchBounded })
  let isReached = false
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  // Only the answers of the service say which plants it has stored.
  stop.addEventListener('abort', () => {
    timer = setTimeout(() => controller.abort(stop.reason), lastAnswersMs)
  })

  function onRetry(failure: PlantStoreError): void {
    isReached ||= !isUnreachable(failure)
    failures++
    if (!isReached && failures > retriesOfNew) controller.abort(failure)
  }

  async function send(plants: readonly NewPlant[]): Promise<ImportReport> {
    for (;;) {
      try {
        const report = await client.importPlants(plants, { onConflict: rule, signal })
        isReached = true
        return report
      } catch (error) {
        // A rate-limited request has not failed, however often that happens.
        const isLimited = error instanceof PlantStoreError && error.status === 429
        if (!isLimited || stop.aborted) throw explainService(error, url)
        await sleep(limitedPauseMs, undefined, { signal })
      }
    }
  }

  return {
    name: url,
    bounds,

    async put(plants) {
      const short = plants.filter(fits)
      const outcomes = short.length === 0 ? [] : toOutcomes(await send(short), short.length, url)
      const ofShort = outcomes.values()
      return plants.map((plant) => (fits(plant) ? (ofShort.next().value ?? tooLong) : tooLong))
    },

    async close() {
      clearTimeout(timer)
    },
  }
}

/** Reads no more of an answer than a report can have. */
async function fetchBounded(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request)
  let bytes = 0
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes <= maxAnswerBytes) controller.enqueue(chunk)
      else controller.error(new Error(`the answer is longer than ${maxAnswerBytes} bytes`))
    },
  })
  return response.body === null
    ? response
    : new Response(response.body.pipeThrough(bounded), response)
}

/**
 * One outcome for each plant. Only those of refused plants have to be at their places. A report
 * that does not add up is not used: its counts may be of any size.
 */
function toOutcomes(report: ImportReport, plants: number, url: string): Outcome[] {
  const refused = new Map(report.refused.map((refusal) => [refusal.line, refusal]))
  const taken = takenKinds.reduce((sum, kind) => sum + report[kind], 0)
  const isOfThese = report.refused.every(({ line }) => line >= 1 && line <= plants)
  if (!isOfThese || refused.size !== report.refused.length || taken + refused.size !== plants) {
    throw new CommandFailed(
      exitCodes.inputOutput,
      `The report of the service at ${url} does not match the ${plants} plants that it was sent.`,
    )
  }
  const kinds = takenKinds
    .flatMap((kind) => Array.from({ length: report[kind] }, (): Outcome => ({ kind })))
    .values()
  return Array.from({ length: plants }, (_, index): Outcome => {
    const refusal = refused.get(index + 1)
    if (refusal === undefined) return kinds.next().value as Outcome
    const { error } = refusal
    const message = refusal.message.slice(0, maxMessageCharacters)
    const kind = error === 40900 ? 'conflicts' : 'invalid'
    return { kind, refusal: { error: error as ErrorNumber, message } }
  })
}

const takenKinds = ['stored', 'alreadyThere', 'replaced', 'skipped'] as const

/** Only a plant that was stored with its id in the path can have a longer line. */
function fits(plant: NewPlant): boolean {
  const { name, tag = '' } = plant
  if (6 * (name.length + tag.length) < limits.bodyBytes / 2) return true
  return Buffer.byteLength(toJson(plant)) <= limits.bodyBytes
}

const tooLong: Outcome = {
  kind: 'invalid',
  refusal: {
    error: 41300,
    message: `The plant has more than ${limits.bodyBytes} bytes as JSON, which the service does not take.`,
  },
}
