import { type NewPlant, startPlantStore, type TestPlantStore } from 'plant-store/testing'

const plants: NewPlant[] = [
  { id: 1n, name: 'Ficus lyrata', tag: 'indoor' },
  { id: 2n, name: 'Acer palmatum' },
]
const store: TestPlantStore = await startPlantStore({ plants })
async function count(): Promise<number> {
  let plants = 0
  for await (const { id } of store.client.list()) plants += id > 0n ? 1 : 0
  return plants
}

const before = await count()
await store.reset(plants.slice(0, 1))
const after = await count()
console.log(before, after, (await store.client.get(1n))?.name)
await store[Symbol.asyncDispose]()

// @ts-expect-error A plant has a name.
void (() => store.reset([{ id: 1n }]))
// @ts-expect-error A port is a number.
void (() => startPlantStore({ port: '3000' }))
