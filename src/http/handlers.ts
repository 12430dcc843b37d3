import { Failure } from '../contract/errors.ts'
import { delimiters, eventStreamType, type Format } from '../contract/formats.ts'
import { limits } from '../contract/limits.ts'
import type { OperationName } from '../contract/operations.ts'
import { findUnmet, latest, type Precondition, pageLimits } from '../contract/parameters.ts'
import type { Scope } from '../contract/scopes.ts'
import type { NewPlant, StoredPlant } from '../contract/shapes.ts'
import { toEventArray, toJson, toJsonArray, toReportJson } from '../json/plant-json.ts'
import { searchPlants } from '../store/lists.ts'
import type { JournalPage, ListQuery, Position, Store, VersionedPlant } from '../store/store.ts'
import type { Answer } from './answer.ts'
import type { App } from './app.ts'
import { openExport } from './export-stream.ts'
import type { FileUpload } from './imports.ts'
import { expectedPosition, type RequestParameters, readPosition, toETag } from './read-request.ts'

/** A request to an operation, judged. Its declaration in the contract says what it has of these. */
export interface Call {
  readonly app: App
  /** The id in the path. */
  readonly id: bigint
  /** The plant in the body. */
  readonly plant: NewPlant
  /** The file in the body. */
  readonly file: FileUpload
  readonly parameters: Partial<RequestParameters>
  readonly tokenId: string
  readonly scopes: ReadonlySet<Scope>
  /** The media type that the client prefers, where the success has several. */
  readonly mediaType: string
}

export type Handler = (call: Call) => Answer | Promise<Answer>

/** The handler of every operation: one that is missing does not compile. */
export const handlers: Readonly<Record<OperationName, Handler>> = {
  async createPlant({ app, plant, parameters, tokenId }) {
    const { id, name, tag } = plant
    const key = parameters['Idempotency-Key']
    // A plant that does not exist yet has no state that could match.
    if (parameters['If-Match'] !== undefined) throw nothingToMatch()
    if (key !== undefined) requireKeysLeft(app, tokenId)
    const outcome =
      key === undefined
        ? await app.store.createPlant(plant, tokenId)
        : await app.store.createPlantOnce(plant, { tokenId, key })
    if (outcome === 'exists') {
      // Without a condition, the state of the stored plant does not matter.
      const stored = parameters['If-None-Match'] && (await app.store.getPlant(id))
      const unmet = findUnmet(toPrecondition(parameters), stored?.version)
      if (unmet !== undefined) throw conditionFailed(parameters)
      throw new Failure(40900, `A plant with the id ${id} exists. It was not changed.`)
    }
    if (outcome === 'key reused') {
      throw new Failure(42200, 'This Idempotency-Key was used with another plant. Use a new key.')
    }
    const { version, isReplay } =
      typeof outcome === 'bigint' ? { version: outcome, isReplay: false } : outcome
    const headers = { Location: toLocation(app, id), ETag: toETag(version) }
    return {
      status: 200,
      headers: isReplay ? { ...headers, 'Idempotency-Replayed': 'true' } : headers,
      body: toJson(tag === undefined ? { name } : { name, tag }),
    }
  },

  async listPlants({ app, parameters, scopes }) {
    const { limit = pageLimits.default, after, tag, name, order } = parameters
    const { plants, next } = await listPage(app.store, { limit, after, tag, name, order })
    const headers = { 'Token-Scopes': [...scopes].join(' ') }
    const Link = next === undefined ? undefined : toLink(app, { ...parameters, limit, after: next })
    return {
      status: 200,
      headers: Link === undefined ? headers : { ...headers, Link },
      body: toJsonArray(plants),
    }
  },

  getPlant({ app, id, parameters }) {
    const found = app.store.getPlant(id)
    return found instanceof Promise
      ? found.then((plant) => toPlantAnswer(id, plant, parameters))
      : toPlantAnswer(id, found, parameters)
  },

  async replacePlant({ app, plant, parameters, tokenId }) {
    const outcome = await app.store.replacePlant(plant, toPrecondition(parameters), tokenId)
    if (outcome === 'condition failed') throw conditionFailed(parameters)
    const ETag = toETag(outcome.version)
    const body = toJson(plant)
    if (outcome.kind === 'replaced') return { status: 200, headers: { ETag }, body }
    return { status: 201, headers: { ETag, Location: toLocation(app, plant.id) }, body }
  },

  async deletePlant({ app, id, parameters, tokenId }) {
    const outcome = await app.store.deletePlant(id, toPrecondition(parameters), tokenId)
    if (outcome === 'absent') throw absent(id)
    if (outcome === 'condition failed') throw conditionFailed(parameters)
    return { status: 204, headers: {} }
  },

  async getMetrics({ app, mediaType }) {
    const { text, contentType } = await app.metrics.write(mediaType)
    return { status: 200, headers: { Vary: 'Accept' }, body: text, contentType }
  },

  async listEvents({ app, parameters, mediaType }) {
    const { limit = pageLimits.default } = parameters
    const isStream = mediaType === eventStreamType
    const after = isStream ? toStart(parameters) : parameters.position
    const { begin, events, end } = await readEvents(app, after, isStream ? 1 : limit)
    const next = isStream ? begin : end
    const headers = {
      Link: `<${toBaseUrl(app)}/events?after=${next}&limit=${limit}>; rel="next"`,
      Vary: 'Accept',
    }
    return { status: 200, headers, body: isStream ? app.streams.from(begin) : toEventArray(events) }
  },

  exportPlantsAsNdjson: (call) => exportPlants(call, 'ndjson'),
  exportPlantsAsCsv: (call) => exportPlants(call, 'csv'),
  importPlantsAsNdjson: (call) => importPlants(call, 'ndjson'),
  importPlantsAsCsv: (call) => importPlants(call, 'csv'),
}

async function exportPlants({ app, parameters, tokenId }: Call, format: Format): Promise<Answer> {
  const { after, tag, exportLimit: limit, delimiter: name, spreadsheet } = parameters
  const delimiter = name && delimiters[name]
  const headers = {
    'Content-Disposition': `attachment; filename="plants.${format}"`,
    Vary: 'Accept-Encoding',
  }
  const query = { after, tag, limit, delimiter, spreadsheet, format }
  return { status: 200, headers, body: await openExport(app, tokenId, query) }
}

async function importPlants(
  { app, parameters, file, tokenId }: Call,
  format: Format,
): Promise<Answer> {
  const { 'on-conflict': rule = 'fail', 'dry-run': dryRun = false, delimiter: name } = parameters
  const delimiter = name && delimiters[name]
  const report = await app.imports.run(file, { format, delimiter, rule, dryRun, tokenId })
  return { status: 200, headers: {}, body: toReportJson(report) }
}

function toPlantAnswer(
  id: bigint,
  plant: VersionedPlant | undefined,
  parameters: Call['parameters'],
): Answer {
  if (plant === undefined) throw absent(id)
  const headers = { ETag: toETag(plant.version) }
  const unmet = findUnmet(toPrecondition(parameters), plant.version)
  if (unmet === 'match') throw conditionFailed(parameters)
  if (unmet === 'noneMatch') return { status: 304, headers }
  return { status: 200, headers, body: toJson(plant) }
}

function toPrecondition(parameters: Call['parameters']): Precondition {
  return { match: parameters['If-Match'], noneMatch: parameters['If-None-Match'] }
}

function toBaseUrl({ settings }: App): string {
  return settings.publicUrl ?? ''
}

function toLocation(app: App, id: bigint): string {
  return `${toBaseUrl(app)}/plants/${id}`
}

function toLink(app: App, { limit, after, tag, name, order }: Call['parameters']): string {
  const byTag = tag === undefined ? '' : `&tag=${toQueryText(tag)}`
  const byName = name === undefined ? '' : `&name=${toQueryText(name)}`
  const inOrder = order === undefined ? '' : `&order=${order}`
  const target = `/plants?limit=${limit}&after=${after}${byTag}${byName}${inOrder}`
  if (target.length > limits.urlBytes) throw nextTooLong()
  return `<${toBaseUrl(app)}${target}>; rel="next"`
}

function nextTooLong(): Failure {
  return new Failure(
    40005,
    `The query parameter tag is too long: the URL of the next page would have more than ${limits.urlBytes} characters.`,
  )
}

/** Text in a query, with as few escapes as possible. */
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

function conditionFailed(parameters: Call['parameters']): Failure {
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

function requireKeysLeft({ countKey }: App, tokenId: string): void {
  const max = limits.keysOfToken
  if (countKey(tokenId).used <= max) return
  throw new Failure(
    50300,
    `This token has used ${max} idempotency keys within 24 hours. Send the create without one.`,
    { reason: 'keys_of_token' },
  )
}

async function readEvents(
  { store }: App,
  after: Position | typeof latest | undefined,
  limit: number,
): Promise<JournalPage> {
  const from = after === latest ? await store.journalEnd() : (after ?? 'oldest')
  const page = from === 'off' ? from : await store.readJournal(from, limit)
  if (page === 'gone') throw gone()
  if (page === 'off') throw switchedOff()
  return page
}

/** Where a stream begins. A client that reconnects says so in a header. */
function toStart({
  position,
  'Last-Event-ID': lastId,
}: Call['parameters']): Position | typeof latest | undefined {
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

/**
 * Reads a page: up to the limit or 1 MiB of JSON, but at least one plant, however large. `next` is
 * the id after which the next one begins, while more plants follow.
 */
async function listPage(
  store: Store,
  { name, ...query }: ListQuery & { readonly name: string | undefined },
) {
  // One more than the limit, to know whether another page follows.
  const found =
    name === undefined
      ? await store.listPlants({ ...query, limit: query.limit + 1 })
      : await searchPlants(store, { ...query, name })
  const plants = takePage(found.plants, query.limit)
  return { plants, next: plants.length < found.plants.length ? plants.at(-1)?.id : found.next }
}

/** The most bytes of JSON that a UTF-16 code unit takes, as `\u0001` does. */
const maxUnitBytes = 6
/** The most bytes of JSON that a plant takes beside its texts. */
const maxFrameBytes = 64

/** As many of the first plants as fit into a page of JSON. */
function takePage(plants: readonly StoredPlant[], limit: number): StoredPlant[] {
  const page = plants.slice(0, limit)
  let units = 0
  for (const { name, tag = '' } of page) units += name.length + tag.length
  if (units * maxUnitBytes + page.length * maxFrameBytes <= limits.pageBytes) return page
  let bytes = 0
  const end = page.findIndex((plant) => {
    bytes += Buffer.byteLength(toJson(plant)) + 1
    return bytes > limits.pageBytes
  })
  return end === -1 ? page : page.slice(0, Math.max(end, 1))
}
