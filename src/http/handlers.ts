import { Failure } from '../contract/errors.ts'
import { eventStreamType, type Format, jsonContentType } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import { latest, pageLimits } from '../contract/parameters.ts'
import { findUnmet, type Precondition } from '../contract/precondition.ts'
import { toEventArray } from '../json/write.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { JournalPage, Position, Store, VersionedPlant } from '../store/store.ts'
import type { ExportForm } from '../transfer/write.ts'
import type { Answer, Call, Handlers } from './calls.ts'
import type { EventStreams } from './event-streams.ts'
import type { Imports } from './imports.ts'
import { expectedPosition, type RequestParameters, readPosition, toETag } from './parameters.ts'
import { listPage, openExport } from './plant-list.ts'
import { buildTokenCount } from './rate-limit.ts'

interface HandlerParts {
  readonly store: Store
  readonly imports: Imports
  readonly streams: EventStreams
  readonly metrics: Metrics
}

export function buildHandlers({ store, imports, streams, metrics }: HandlerParts): Handlers {
  const countKey = buildTokenCount(limits.keyLifetimeMs)

  function requireKeysLeft(tokenId: string): void {
    if (countKey(tokenId).used > limits.keysOfToken) throw tooManyKeys(limits.keysOfToken)
  }

  return {
    async createPlant({ body: { id, name, tag }, parameters, baseUrl, tokenId }) {
      const plant = tag === undefined ? { id, name } : { id, name, tag }
      const key = parameters['Idempotency-Key']
      // A plant that does not exist yet has no state that could match.
      if (parameters.createIfMatch !== undefined) throw nothingToMatch()
      if (key !== undefined) requireKeysLeft(tokenId)
      const outcome =
        key === undefined
          ? await store.createPlant(plant, tokenId)
          : await store.createPlantOnce(plant, { tokenId, key })
      if (outcome === 'exists') {
        // Without a condition, the state of the stored plant does not matter.
        const stored = parameters['If-None-Match'] && (await store.getPlant(id))
        const condition = { match: undefined, noneMatch: parameters['If-None-Match'] }
        const unmet = findUnmet(condition, stored?.version)
        if (unmet !== undefined) throw conditionFailed(parameters)
        throw new Failure(40900, `A plant with the id ${id} exists. It was not changed.`)
      }
      if (outcome === 'key reused') {
        throw new Failure(42200, 'This Idempotency-Key was used with another plant. Use a new key.')
      }
      const { version, isReplay } =
        typeof outcome === 'bigint' ? { version: outcome, isReplay: false } : outcome
      const headers = { Location: toLocation(baseUrl, id), ETag: toETag(version) }
      return {
        status: 200,
        headers: isReplay ? { ...headers, 'Idempotency-Replayed': 'true' } : headers,
        body: tag === undefined ? { name } : { name, tag },
      }
    },

    async listPlants({ parameters, baseUrl, scopes }) {
      const { limit = pageLimits.default, ...rest } = parameters
      const query = { ...rest, limit }
      const { plants, next } = await listPage(store, query)
      const Link = next === undefined ? undefined : toLink(baseUrl, { ...query, after: next })
      const headers = { 'Token-Scopes': [...scopes].join(' ') }
      return {
        status: 200,
        headers: Link === undefined ? headers : { ...headers, Link },
        body: plants,
      }
    },

    getPlant({ id, parameters }) {
      const found = store.getPlant(id)
      return found instanceof Promise
        ? found.then((plant) => toPlantAnswer(id, plant, parameters))
        : toPlantAnswer(id, found, parameters)
    },

    async replacePlant({ id, body: { name, tag }, parameters, baseUrl, tokenId }) {
      const plant = tag === undefined ? { id, name } : { id, name, tag }
      const outcome = await store.replacePlant(plant, toPrecondition(parameters), tokenId)
      if (outcome === 'condition failed') throw conditionFailed(parameters)
      const ETag = toETag(outcome.version)
      if (outcome.kind === 'replaced') return { status: 200, headers: { ETag }, body: plant }
      return { status: 201, headers: { ETag, Location: toLocation(baseUrl, id) }, body: plant }
    },

    async deletePlant({ id, parameters, tokenId }) {
      const outcome = await store.deletePlant(id, toPrecondition(parameters), tokenId)
      if (outcome === 'absent') throw absent(id)
      if (outcome === 'condition failed') throw conditionFailed(parameters)
      return { status: 204, headers: {}, body: undefined }
    },

    async getMetrics({ mediaType }) {
      return { status: 200, headers: { Vary: 'Accept' }, body: await metrics.write(mediaType) }
    },

    ...buildFileHandlers(store, imports),
    ...buildEventHandlers(store, streams),
  }
}

type Export = 'exportPlantsAsNdjson' | 'exportPlantsAsCsv'
type Import = 'importPlantsAsNdjson' | 'importPlantsAsCsv'

/** The handlers of exports and imports. */
function buildFileHandlers(store: Store, imports: Imports): Pick<Handlers, Export | Import> {
  async function exportPlants(
    { parameters, tokenId }: Call<'exportPlantsAsNdjson'>,
    form: ExportForm,
  ): Promise<Answer<Export>> {
    const { after, tag, exportLimit: limit } = parameters
    const headers = {
      'Content-Disposition': `attachment; filename="plants.${form.format}"`,
      Vary: 'Accept-Encoding',
    }
    const body = await openExport(store, tokenId, { ...form, after, tag, limit })
    return { status: 200, headers, body }
  }

  async function importPlants(
    { parameters, body, tokenId }: Call<'importPlantsAsNdjson'>,
    format: Format,
    delimiter?: string,
  ): Promise<Answer<Import>> {
    const { 'on-conflict': rule = 'fail', 'dry-run': dryRun = false } = parameters
    const report = await imports.run(body, { format, delimiter, rule, dryRun, tokenId })
    return { status: 200, headers: {}, body: report }
  }

  return {
    exportPlantsAsNdjson: (call) => exportPlants(call, { format: 'ndjson' }),
    exportPlantsAsCsv(call) {
      const { delimiter, spreadsheet } = call.parameters
      return exportPlants(call, { format: 'csv', delimiter, spreadsheet })
    },
    importPlantsAsNdjson: (call) => importPlants(call, 'ndjson'),
    importPlantsAsCsv: (call) => importPlants(call, 'csv', call.parameters.delimiter),
  }
}

function toPlantAnswer(
  id: bigint,
  plant: VersionedPlant | undefined,
  parameters: Pick<RequestParameters, 'If-Match' | 'If-None-Match'>,
): Answer<'getPlant'> {
  if (plant === undefined) throw absent(id)
  const headers = { ETag: toETag(plant.version) }
  const unmet = findUnmet(toPrecondition(parameters), plant.version)
  if (unmet === 'match') throw conditionFailed(parameters)
  if (unmet === 'noneMatch') return { status: 304, headers, body: undefined }
  return { status: 200, headers, body: plant }
}

function toPrecondition(
  parameters: Pick<RequestParameters, 'If-Match' | 'If-None-Match'>,
): Precondition {
  return { match: parameters['If-Match'], noneMatch: parameters['If-None-Match'] }
}

function toLocation(baseUrl: string, id: bigint): string {
  return `${baseUrl}/plants/${id}`
}

function toLink(
  baseUrl: string,
  { limit, after, tag, name, order }: Call<'listPlants'>['parameters'],
): string {
  const byTag = tag === undefined ? '' : `&tag=${toQueryText(tag)}`
  const byName = name === undefined ? '' : `&name=${toQueryText(name)}`
  const inOrder = order === undefined ? '' : `&order=${order}`
  return `<${baseUrl}/plants?limit=${limit}&after=${after}${byTag}${byName}${inOrder}>; rel="next"`
}

/** Text in a query, with as few escapes as possible: a tag that fitted into a URL fits again. */
function toQueryText(text: string): string {
  return encodeURIComponent(text)
    .replaceAll('%20', '+')
    .replaceAll(/%(?:24|2C|2F|3A|3B|3D|3F|40|5B|5D)/g, decodeURIComponent)
}

function absent(id: bigint): Failure {
  return new Failure(40401, `No plant has the id ${id}.`)
}

function nothingToMatch(): Failure {
  return new Failure(41200, 'A plant that is created has no ETag yet: send it without If-Match.')
}

function conditionFailed(parameters: Partial<RequestParameters>): Failure {
  const { 'If-Match': match, 'If-None-Match': noneMatch } = parameters
  if (noneMatch === undefined) {
    return new Failure(
      41200,
      'The plant has changed or was deleted: its ETag no longer matches If-Match. Get it again.',
    )
  }
  return new Failure(
    41200,
    match === undefined
      ? 'The plant exists, and If-None-Match asks to keep it. Nothing was changed.'
      : 'The plant is in another state than If-Match and If-None-Match ask for. Get it again.',
  )
}

function tooManyKeys(max: number): Failure {
  return new Failure(
    50300,
    `This token has used ${max} idempotency keys within 24 hours. Send the create without one.`,
    { reason: 'keys_of_token' },
  )
}

/** The handlers of the operations on the journal. */
function buildEventHandlers(store: Store, streams: EventStreams): Pick<Handlers, 'listEvents'> {
  async function read(
    after: Position | typeof latest | undefined,
    limit: number,
  ): Promise<JournalPage> {
    const from = after === latest ? await store.journalEnd() : (after ?? 'oldest')
    if (from === 'off') throw switchedOff()
    const page = await store.readJournal(from, limit)
    if (page === 'gone') throw gone()
    if (page === 'off') throw switchedOff()
    return page
  }

  return {
    async listEvents({ parameters, baseUrl, mediaType }) {
      const { eventLimit: limit = pageLimits.default } = parameters
      const headers = (position: Position) => ({
        Link: `<${baseUrl}/events?after=${position}&limit=${limit}>; rel="next"`,
        Vary: 'Accept',
      })
      if (mediaType === eventStreamType) {
        const { begin } = await read(toStart(parameters), 1)
        return { status: 200, headers: headers(begin), body: streams.from(begin) }
      }
      const { events, end } = await read(parameters.position, limit)
      const body = {
        contentType: jsonContentType,
        get text() {
          return toEventArray(events)
        },
      }
      return { status: 200, headers: headers(end), body }
    },
  }
}

/** Where a stream begins. A client that reconnects says so in a header. */
function toStart({
  position,
  'Last-Event-ID': lastId,
}: Call<'listEvents'>['parameters']): Position | typeof latest | undefined {
  if (lastId === undefined) return position
  const start = readPosition(lastId)
  if (start !== undefined) return start
  throw new Failure(40005, `The header Last-Event-ID must be ${expectedPosition}.`)
}

function gone(): Failure {
  return new Failure(
    41000,
    'This position is no longer kept, or belongs to another store. Start again: request after=latest, list all plants, then follow the Link of the first answer.',
  )
}

function switchedOff(): Failure {
  return new Failure(
    41000,
    'Another process has switched the journal off. Every process of a store needs the same JOURNAL_KEEP.',
  )
}
