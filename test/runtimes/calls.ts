import { PlantStore, PlantStoreError } from '../../client/index.ts'

/** What every runtime must see. Ids are texts here, because JSON of a bigint is an error. */
export type Seen = Readonly<Record<string, unknown>>

/** Makes every call of the client and answers what came of it. `base` is the first id it uses. */
export async function makeCalls(url: string, token: string, base: bigint): Promise<Seen> {
  const store = new PlantStore({ url, token })
  const id = base + 1n
  const from = await findEnd(store, base)
  const created = await store.create({ id, name: 'Ficus "\u{1f33f}"', tag: '' })
  const conflict = await store.create({ id, name: 'x' }).catch((error: unknown) => error)
  const got = await store.get(id)
  const replaced = await store.replace(id, { name: 'b' }, { ifMatch: created.etag })
  const stale = await store
    .replace(id, { name: 'c' }, { ifMatch: created.etag })
    .catch((error: unknown) => error)
  const updated = await store.update(id, ({ name }) => ({ name: `${name}!`, tag: 'a tag&' }))
  const report = await store.importPlants([
    { id: base, name: 'first' },
    { id, name: 'other' },
    { id: base + 2n, name: 'last', tag: 'a tag&' },
  ])
  const plants: string[] = []
  for await (const plant of store.list({ after: base - 1n, pageSize: 1 })) {
    if (plant.id > base + 2n) break
    plants.push(`${plant.id - base} ${plant.name} ${plant.tag}`)
  }
  const tagged = await Array.fromAsync(store.list({ tag: 'a tag&', after: base - 1n }))
  const reason = { because: 'enough' }
  const controller = new AbortController()
  const aborted = store.get(id, { signal: controller.signal }).catch((error: unknown) => error)
  controller.abort(reason)
  const deleted = [await store.delete(id), await store.delete(id), await store.get(id)]
  const events: string[] = []
  for await (const { type, plant } of store.events({ after: from })) {
    if (events.push(`${type} ${plant.id - base} ${plant.name}`) === 4) break
  }
  return {
    events,
    created: [created.id === id, created.name, created.tag, typeof created.etag],
    conflict: conflict instanceof PlantStoreError && [conflict.status, conflict.error],
    got: got?.id === id && got.etag === created.etag,
    replaced: [replaced.name, replaced.tag ?? 'no tag', replaced.created],
    stale: stale instanceof PlantStoreError && stale.error,
    updated: [updated?.name, updated?.tag],
    imported: [report.lines, report.stored, report.conflicts],
    refused: report.refused.map((refusal) => [refusal.line, refusal.id === id, refusal.error]),
    plants,
    tagged: tagged.filter((plant) => plant.id <= base + 2n).map((plant) => `${plant.id - base}`),
    aborted: (await aborted) === reason,
    deleted: deleted.map(String),
  }
}

/** The position of the last event. */
async function findEnd(store: PlantStore, base: bigint): Promise<string> {
  const mark = await store.replace(base - 1n, { name: `mark ${base}` })
  for await (const { position, plant } of store.events()) {
    if (plant.id === mark.id) return position
  }
  throw new Error('The stream ended.')
}
