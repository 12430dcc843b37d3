import { type NewPlant, PlantStore, PlantStoreError, type StoredPlant } from 'plant-store/client'

declare const process: { argv: string[] }

const [, , url = '', token = ''] = process.argv
const store = new PlantStore({ url, token })
const plant: NewPlant = { id: 9223372036854775807n, name: 'Ficus' }
const { id, etag }: { id: bigint; etag: string } = await store.create(plant)
const error = await store.create(plant).catch((caught: unknown) => caught)
if (!(error instanceof PlantStoreError)) throw error
const number: number | undefined = error.error
const tag: string | undefined = (await store.get(id))?.tag
const listed: StoredPlant[] = []
for await (const stored of store.list()) listed.push(stored)
console.log(id === listed[0]?.id, typeof etag, number, tag)

// @ts-expect-error An id is a bigint.
void (() => store.get(1))
// @ts-expect-error A plant has a name.
void (() => store.create({ id: 1n }))
// @ts-expect-error A token is needed.
void (() => new PlantStore({ url }))
