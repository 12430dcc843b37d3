// The same file runs under Vitest and Jest, whose functions have the same names.
import { startPlantStore } from 'plant-store/testing'

const ficus = { id: 9223372036854775807n, name: 'Ficus lyrata', tag: 'indoor' }
let store

beforeAll(async () => {
  store = await startPlantStore()
})
beforeEach(() => store.reset([ficus]))
afterAll(() => store.stop())

for (const turn of ['first', 'second']) {
  test(`the ${turn} test has the plants of the reset, and no others`, async () => {
    await store.client.create({ id: 1n, name: 'Acer palmatum' }, { idempotencyKey: 'fixed' })
    expect(await Array.fromAsync(store.client.list())).toEqual([
      { id: 1n, name: 'Acer palmatum' },
      ficus,
    ])
  })
}

test('a failure is an error of the client', async () => {
  await expect(store.client.create(ficus)).rejects.toMatchObject({ error: 40900 })
  await expect(store.reset([{ id: 1n }])).rejects.toThrow('"name" is missing')
})

test('an import, a stream of events and the page are served', async () => {
  const { stored } = await store.client.importPlants([{ id: 2n, name: 'Ginkgo biloba' }])
  expect(stored).toBe(1)
  for await (const { plant } of store.client.events()) if (plant.id === 2n) break
  expect((await fetch(store.url)).status).toBe(200)
})

test('others run beside it, each with a store of its own', async () => {
  await using other = await startPlantStore({ plants: [{ id: 7n, name: 'Salvia rosmarinus' }] })
  expect(await store.client.get(7n)).toBeUndefined()
  expect((await other.client.get(7n)).name).toBe('Salvia rosmarinus')
})
