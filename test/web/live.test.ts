import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, describe, it, mock } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { Store } from '../../src/store/store.ts'
import { issueToken } from '../../src/tokens/issue.ts'
import { browserMissing } from '../support/browser.ts'
import { newFolder } from '../support/folder.ts'
import { releaseAfterTest } from '../support/release.ts'
import { json, operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import {
  checkAccessibility,
  dialog,
  importLines,
  readRows,
  save,
  visitLive,
  visitPlants,
} from './visit.ts'

const dayMs = 24 * 60 * 60 * 1000
const everyScope = { scopes: ['plants:read', 'plants:write'], lifetimeMs: undefined } as const

describe('changes of others', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
    for (let id = 1; id <= 5; id++) await service.create(`{"id":${id * 10},"name":"plant ${id}"}`)
  })

  function put(id: number, plant: object) {
    const body = JSON.stringify(plant)
    return service.call({ method: 'PUT', path: `/plants/${id}`, headers: json, body })
  }

  it('appear by themselves, and one sees that they did', async () => {
    const { page } = await visitLive(service.url)
    await service.create('{"id":25,"name":"new one","tag":"t"}')
    await page.getByText('Somebody has added plant 25.').waitFor({ timeout: 10_000 })
    await page.locator('tr[data-mark="changed"]').getByText('new one').waitFor()
    assert.deepEqual(
      (await readRows(page)).map(([id]) => id),
      ['10', '20', '25', '30', '40', '50'],
    )
    await put(30, { name: 'renamed' })
    await page.locator('tr[data-mark="changed"]').getByText('renamed').waitFor()
    await service.call({ method: 'DELETE', path: '/plants/25' })
    await page.getByText('Somebody has deleted plant 25.').waitFor()
    assert.equal(await page.getByText('new one').count(), 0)
    await checkAccessibility(page)
  })

  it('are told apart from own ones', async () => {
    const { page } = await visitLive(service.url)
    await page.getByRole('button', { name: 'Edit plant 10' }).click()
    await save(dialog(page, 'Edit plant'), { name: 'mine alone' })
    await page.getByText('Plant 10 saved.').waitFor()
    await put(20, { name: 'theirs alone' })
    await page.getByText('Somebody has changed plant 20.').waitFor()
    assert.equal(await page.locator('tr[data-mark="changed"]').count(), 1)
    // The stream may tell of an own change before its answer arrives.
    await page.route('**/plants', async (route) => {
      const response = await route.fetch()
      await page.getByRole('cell', { name: 'quick', exact: true }).waitFor({ state: 'attached' })
      await route.fulfill({ response })
    })
    await page.getByRole('button', { name: 'Add plant' }).click()
    await save(dialog(page, 'Add plant'), { id: '11', name: 'quick' })
    await page.getByText('Plant 11 saved.').waitFor()
    assert.equal(await page.locator('tr[data-mark="changed"]').getByText('quick').count(), 0)
    await service.call({ method: 'DELETE', path: '/plants/11' })
    await page.getByText('Somebody has deleted plant 11.').waitFor()
    // Somebody else makes the same change as this page did before.
    await put(10, { name: 'theirs' })
    await page.getByText('Somebody has changed plant 10.').waitFor()
    await put(20, { name: 'theirs again' })
    await page.getByText('Somebody has changed plant 20.').waitFor()
    await put(10, { name: 'mine alone' })
    await page.getByText('Somebody has changed plant 10.').waitFor()
  })

  it('follow the filter: a plant that gets the tag comes, one that loses it goes', async () => {
    await put(40, { name: 'tagged', tag: 'special' })
    const { page } = await visitPlants(service.url)
    await page.getByLabel('Filter by tag').fill('special')
    await waitUntil(async () => (await readRows(page)).length === 1, 'only one has the tag')
    await put(50, { name: 'also tagged', tag: 'special' })
    await page.getByRole('cell', { name: 'also tagged' }).waitFor()
    await put(40, { name: 'tagged no more' })
    await waitUntil(async () => (await readRows(page)).length === 1, 'one has gone')
  })

  it('come in any number, of which the list shows few', async () => {
    const crowded = await startService('sqlite::memory:')
    const { page } = await visitLive(crowded.url)
    for (let first = 1_000; first < 6_000; first += 500) {
      await importMany(crowded, first, 500)
      await page.getByText(/All plants: more than \d+/).waitFor()
    }
    const { body } = await crowded.call({ path: '/plants?limit=100' })
    const expected = JSON.parse(body).map(({ id }: { id: number }) => String(id))
    const ids = (await readRows(page)).map(([id]) => id)
    assert.deepEqual(ids.slice(0, 100), expected)
    assert.ok(ids.length <= 200, `${ids.length} rows`)
  })

  it('are read as a list where there are too many to show one by one', async () => {
    const crowded = await startService('sqlite::memory:')
    const { page } = await visitLive(crowded.url)
    const session = await page.context().newCDPSession(page)
    let bytes = 0
    session.on('Network.dataReceived', ({ dataLength }) => {
      bytes += dataLength
    })
    await session.send('Network.enable')
    // No timer shows any change before all have arrived.
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 60_000)
    await importMany(crowded, 1_000, 5_000)
    await waitUntil(() => bytes > 5_000 * 50, 'the changes have arrived')
    await page.clock.resume()
    await page.getByRole('cell', { name: '1000', exact: true }).waitFor()
  })

  it('keep an edit from overwriting them: both versions are shown, and one chooses', async () => {
    const { page } = await visitPlants(service.url)
    for (const [choice, expected] of [
      ['Overwrite with mine', '{"id":10,"name":"mine"}'],
      ['Use theirs', '{"id":10,"name":"theirs","tag":"quick"}'],
    ] as const) {
      const form = await openForm(page, 'Edit plant', 10)
      await put(10, { name: 'theirs', tag: 'quick' })
      await save(form, { name: 'mine', tag: '' })
      await form.getByRole('alert').getByText('Somebody has changed this plant').waitFor()
      await form.getByRole('heading', { name: 'Yours' }).waitFor()
      await form.getByText('theirs', { exact: true }).waitFor()
      if (choice === 'Use theirs') await checkAccessibility(page)
      assert.equal(await form.getByLabel('Name').inputValue(), 'mine')
      await form.getByRole('button', { name: choice }).click()
      await form.waitFor({ state: 'detached' })
      const said = choice === 'Use theirs' ? 'Plant 10 stays as it is.' : 'Plant 10 saved.'
      await page.getByText(said, { exact: true }).waitFor()
      assert.equal((await service.call({ path: '/plants/10' })).body, expected)
    }
  })

  it('are overwritten once, although "Save" is pressed while the choice is carried out', async () => {
    const { page } = await visitPlants(service.url)
    const form = await openForm(page, 'Edit plant', 20)
    await put(20, { name: 'theirs' })
    await save(form, { name: 'mine' })
    const useMine = form.getByRole('button', { name: 'Overwrite with mine' })
    await useMine.waitFor()
    const writes: string[] = []
    const pressed = Promise.withResolvers<void>()
    await page.route('**/plants/20', async (route) => {
      writes.push(route.request().method())
      await pressed.promise
      await route.continue()
    })
    await useMine.click()
    await form.getByRole('button', { name: 'Save' }).click()
    pressed.resolve()
    await page.getByText('Plant 20 saved.').waitFor()
    assert.deepEqual(writes, ['PUT'])
    assert.equal((await service.call({ path: '/plants/20' })).body, '{"id":20,"name":"mine"}')
  })

  it('keep an edit of a deleted plant from bringing it back unasked', async () => {
    await service.create('{"id":60,"name":"doomed"}')
    const { page } = await visitPlants(service.url)
    const form = await openForm(page, 'Edit plant', 60)
    await service.call({ method: 'DELETE', path: '/plants/60' })
    await save(form, { name: 'revived' })
    await form.getByRole('alert').getByText('Somebody has deleted this plant').waitFor()
    assert.equal((await service.call({ path: '/plants/60' })).status, 404)
    await form.getByRole('button', { name: 'Overwrite with mine' }).click()
    await form.waitFor({ state: 'detached' })
    assert.equal((await service.call({ path: '/plants/60' })).body, '{"id":60,"name":"revived"}')
  })

  it('keep a delete from hitting a plant that nobody has seen', async () => {
    await service.create('{"id":70,"name":"seen"}')
    const { page } = await visitPlants(service.url)
    const form = await openForm(page, 'Delete plant', 70)
    await put(70, { name: 'not seen yet' })
    await form.getByRole('button', { name: 'Delete' }).click()
    await form.getByText('not seen yet').waitFor()
    assert.equal((await service.call({ path: '/plants/70' })).status, 200)
    await form.getByRole('button', { name: 'Delete' }).click()
    await form.waitFor({ state: 'detached' })
    assert.equal((await service.call({ path: '/plants/70' })).status, 404)
  })

  it('are not waited for where the service keeps no journal', async () => {
    const silent = await startService('sqlite::memory:', { env: { JOURNAL_KEEP: 'off' } })
    const { page } = await visitPlants(silent.url)
    await page.getByText('Live updates are off').waitFor()
  })
})

/** Makes many changes at once. */
function importMany(service: TestService, first: number, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, index) => `{"id":${first + index},"name":"x"}`)
  return importLines(service, lines)
}

/** Opens the dialog of this name for a plant. */
async function openForm(page: Page, name: string, id: number): Promise<Locator> {
  await page.getByRole('button', { name: `${name} ${id}`, exact: true }).click()
  const form = dialog(page, name)
  await form.waitFor()
  return form
}

describe('the page in bad times', { skip: browserMissing }, () => {
  const ends = {
    revoked: (store: Store, id: string) => store.revokeToken(id, Date.now()),
    expired: () => mock.timers.enable({ apis: ['Date'], now: Date.now() + 2 * dayMs }),
  }
  for (const [state, end] of Object.entries(ends)) {
    it(`asks for another token when its own is ${state}, and loses nothing that was typed`, async () => {
      releaseAfterTest(() => mock.timers.reset())
      const service = await startService('sqlite::memory:')
      const first = await issueToken(service.store, {
        ...everyScope,
        name: 'first',
        lifetimeMs: dayMs,
      })
      const second = await issueToken(service.store, { ...everyScope, name: 'second' })
      const { page } = await visitLive(service.url, { token: first.token })
      await page.getByRole('button', { name: 'Add plant' }).click()
      const form = dialog(page, 'Add plant')
      await form.getByLabel('Id').fill('1')
      await form.getByLabel('Name').fill('typed before')
      await end(service.store, first.record.id)
      const again = dialog(page, 'Sign in again')
      await again.getByRole('alert').getByText(state).waitFor()
      const isExpired = state === 'expired'
      const said = isExpired ? 'The token has expired' : 'The token was refused'
      await page.getByRole('status').getByText(said, { exact: true }).waitFor()
      assert.equal(await page.getByText('Connection lost').count(), 0)
      await checkAccessibility(page)
      await again.getByLabel('Token').fill(second.token)
      await again.getByRole('button', { name: 'Sign in' }).click()
      await again.waitFor({ state: 'detached' })
      assert.equal(await form.getByLabel('Name').inputValue(), 'typed before')
      await form.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('cell', { name: 'typed before' }).waitFor()
      await service.create('{"id":2,"name":"followed again"}')
      await page.getByRole('cell', { name: 'followed again' }).waitFor()
    })
  }

  it('filters as it was asked to once there is another token', async () => {
    const service = await startService('sqlite::memory:')
    await service.create('{"id":1,"name":"without"}')
    await service.create('{"id":2,"name":"with","tag":"t"}')
    const { page } = await visitLive(service.url)
    const body = JSON.stringify({ error: 40102, message: 'The token has expired.' })
    await page.route('**/plants?*tag=t*', (route) => route.fulfill({ status: 401, body }), {
      times: 1,
    })
    await page.getByLabel('Filter by tag').fill('t')
    const again = dialog(page, 'Sign in again')
    await again.getByLabel('Token').fill(operatorToken)
    await again.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('with the tag “t”: 1').waitFor()
    assert.deepEqual(await readRows(page), [['2', 'with', 't']])
  })

  it('misses no change between a gap and the next stream', async () => {
    const service = await startService('sqlite::memory:')
    await service.create('{"id":1,"name":"before"}')
    const { page } = await visitLive(service.url)
    const { port } = new URL(service.url)
    await service.close()
    const again = await startService('sqlite::memory:', { env: { PORT: port } })
    // The first position is of another store. The second stream comes after another list.
    await page.waitForResponse((response) => response.status() === 410)
    const asked = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    await page.route('**/events?*', async (route) => {
      if (route.request().headers().accept === 'text/event-stream') {
        asked.resolve()
        await held.promise
      }
      await route.continue()
    })
    await asked.promise
    await page.getByText('No plants yet').waitFor()
    await again.create('{"id":2,"name":"between the list and the stream"}')
    held.resolve()
    await page.getByRole('cell', { name: 'between the list and the stream' }).waitFor()
  })

  it('are not followed while the page is hidden, and all of them appear afterwards', async () => {
    const service = await startService('sqlite::memory:')
    for (let id = 1; id <= 3; id++) await service.create(`{"id":${id},"name":"fern ${id}"}`)
    const { page } = await visitLive(service.url)
    await page.getByLabel('Search by name').fill('fern')
    await page.getByText('whose name contains “fern”: 3').waitFor()
    const show = (isShown: boolean) =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isShown} })
        document.dispatchEvent(new Event('visibilitychange'))`)
    const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/events'))
    await show(false)
    await ended
    await service.create('{"id":4,"name":"fern 4"}')
    let lists = 0
    page.on('request', (request) => {
      if (request.url().includes('/plants?')) lists++
    })
    await show(true)
    await page.getByText('Somebody has added plant 4.').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    assert.equal(lists, 0)
  })

  it('says that the service does not answer, and goes on when it does', async () => {
    const url = `sqlite:${join(newFolder(), 'plants.db')}`
    const service = await startService(url)
    await service.create('{"id":1,"name":"before"}')
    const { page } = await visitLive(service.url)
    await page.getByRole('button', { name: 'Add plant' }).click()
    const form = dialog(page, 'Add plant')
    await service.close()
    await save(form, { id: '2', name: 'saved meanwhile' })
    await page.getByText('Connection lost. Reconnecting …').waitFor()
    await startService(url, { env: { PORT: new URL(service.url).port } })
    await page.getByRole('cell', { name: 'saved meanwhile' }).waitFor({ timeout: 60_000 })
    const next = new URL(service.url)
    await fetch(new URL('/plants', next), {
      method: 'POST',
      headers: json,
      body: '{"id":3,"name":"after"}',
    })
    await page.getByRole('cell', { name: 'after', exact: true }).waitFor({ timeout: 60_000 })
    await page.getByText('Live', { exact: true }).waitFor()
  })

  it('takes a failure back once the service answers again', async () => {
    const url = `sqlite:${join(newFolder(), 'plants.db')}`
    const service = await startService(url)
    const { page } = await visitLive(service.url)
    await service.close()
    await page.getByLabel('Search by name').fill('fern')
    const problem = page.getByText('The service does not answer.')
    await problem.waitFor({ timeout: 60_000 })
    await page.getByRole('button', { name: 'Add plant' }).click()
    const form = dialog(page, 'Add plant')
    await save(form, { id: '1', name: 'fern' })
    await form.getByRole('alert').getByText('does not answer').waitFor({ timeout: 60_000 })
    await startService(url, { env: { PORT: new URL(service.url).port } })
    await waitUntil(async () => (await problem.count()) === 0, 'both are gone')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByText('“fern”: 1').waitFor()
  })

  it('reads everything anew where another store has taken the place of its own', async () => {
    const service = await startService('sqlite::memory:')
    await service.create('{"id":1,"name":"of the first store"}')
    const { page } = await visitLive(service.url)
    await service.close()
    const env = { PORT: new URL(service.url).port }
    const next = await startService('sqlite::memory:', { env })
    await next.create('{"id":2,"name":"of the second store"}')
    await page.getByRole('cell', { name: 'of the second store' }).waitFor({ timeout: 60_000 })
    assert.equal(await page.getByRole('cell', { name: 'of the first store' }).count(), 0)
    await next.create('{"id":3,"name":"followed again"}')
    await page.getByRole('cell', { name: 'followed again' }).waitFor({ timeout: 60_000 })
  })
})
