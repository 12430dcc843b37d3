import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type MirrorChange, PlantStore } from '../../client/index.ts'
import { startService, operatorToken as token } from '../support/service.ts'
import { answer, openScriptedServer, type Script } from './scripted-server.ts'

/** Reads this many changes of a mirror, without the times of events. */
async function take(changes: AsyncIterable<MirrorChange>, count: number): Promise<object[]> {
  const taken: object[] = []
  for await (const change of changes) {
    const { at: _, ...rest } = { at: '', ...change }
    if (taken.push(rest) === count) break
  }
  return taken
}

async function openStore(): Promise<PlantStore> {
  return new PlantStore({ url: (await startService('sqlite::memory:')).url, token })
}

const store = await openStore()
const plants = [1n, 2n, 2n ** 62n + 1n].map((id) => ({ id, name: `Plant ${id}` }))
for (const plant of plants) await store.create(plant)

describe('a mirror', () => {
  const toSteps = (position: string) => [
    { type: 'reset' },
    ...plants.map((plant) => ({ type: 'plant', plant })),
    { type: 'synced', position },
  ]

  it('begins with every plant and the position, then follows', async () => {
    const position = await store.position()
    const mirror = store.mirror()
    const steps = []
    while (steps.length < 5) steps.push((await mirror.next()).value)
    assert.deepEqual(steps, toSteps(position))
    await store.replace(1n, { name: 'new' })
    const { value } = await mirror.next()
    assert.equal(value.position, await store.position())
    assert.deepEqual([value.type, value.plant], ['plant.replaced', { id: 1n, name: 'new' }])
    await mirror.return?.()
    await store.replace(1n, { name: 'Plant 1' })
  })

  for (const [when, before] of [
    ['before', 1],
    ['between', 2],
  ] as const) {
    it(`tells changes that came ${when} the plants of its list before it is synced`, async () => {
      const mirror = store.mirror()
      const steps = []
      while (steps.length < before) steps.push((await mirror.next()).value)
      await store.create({ id: 3n, name: 'short-lived' })
      await store.delete(3n)
      const end = await store.position()
      do steps.push((await mirror.next()).value)
      while (steps.at(-1).type !== 'synced')
      const types = steps.map(({ type }) => type)
      assert.deepEqual(types, [
        'reset',
        'plant',
        'plant',
        'plant',
        'plant.created',
        'plant.deleted',
        'synced',
      ])
      assert.equal(steps.at(-1).position, end)
      await mirror.return?.()
    })
  }

  it('follows from a position, without the plants', async () => {
    const after = await store.position()
    await store.create({ id: 4n, name: 'x' })
    await store.delete(4n)
    const seen = await take(store.mirror({ after }), 2)
    const position = await store.position()
    assert.deepEqual(seen.at(-1), { type: 'plant.deleted', position, plant: { id: 4n, name: 'x' } })
  })

  it('begins again if the position is of another store', async () => {
    const after = await (await openStore()).position()
    assert.deepEqual(await take(store.mirror({ after }), 5), toSteps(await store.position()))
  })

  it('throws every other refusal', async () => {
    await assert.rejects(store.mirror({ after: 'no position!' }).next(), { error: 40005 })
  })

  it('throws if the service has no position at all, instead of asking for ever', async () => {
    const off = answer(410, { error: 41000, message: 'The journal was switched off.' })
    const { url, requests } = await openScriptedServer(off, off, answer(404, 'asked again'))
    await assert.rejects(new PlantStore({ url, token }).mirror().next(), { error: 41000 })
    assert.equal(requests.length, 1)
  })

  /** The answer to the question for a position. */
  const told = (position: string) =>
    answer(200, '[]', { Link: `</events?after=${position}>; rel="next"` })
  const noPlants = answer(200, '[]')
  /** A stream without a change, as a quiet service sends it. */
  const quiet: Script = (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('id: p7\nretry: 1000\n\n:\n\n')
  }

  it('asks for the end again if it was told one that never comes', async () => {
    const begin = [told('p7'), noPlants, told('p5'), quiet]
    const { url, requests } = await openScriptedServer(...begin, told('p6'), told('p7'))
    assert.deepEqual(await take(new PlantStore({ url, token }).mirror(), 2), [
      { type: 'reset' },
      { type: 'synced', position: 'p7' },
    ])
    const asked = requests.slice(-2).map((request) => request.url)
    assert.deepEqual(asked, ['/events?after=p5&limit=1', '/events?after=latest&limit=1'])
  })

  it('begins again if the end that it was told was undone', async () => {
    const gone = answer(410, { error: 41000, message: 'The position is no longer kept.' })
    const begin = [told('p7'), noPlants, told('p9'), quiet, gone]
    const { url, requests } = await openScriptedServer(...begin, told('p8'), noPlants, told('p8'))
    assert.deepEqual(await take(new PlantStore({ url, token }).mirror(), 3), [
      { type: 'reset' },
      { type: 'reset' },
      { type: 'synced', position: 'p8' },
    ])
    assert.equal(requests[4]?.url, '/events?after=p9&limit=1')
  })

  it('waits for a service that cannot tell its position yet, however often it has to ask', async () => {
    const wait = answer(503, { error: 50301, message: 'Try again later.' })
    const end = [told('p7'), noPlants, wait, wait, told('p7')]
    const { url } = await openScriptedServer(wait, wait, wait, ...end)
    const mirror = new PlantStore({ url, token, retries: 1 }).mirror()
    assert.deepEqual(await take(mirror, 2), [{ type: 'reset' }, { type: 'synced', position: 'p7' }])
  })
})
