import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it, mock } from 'node:test'
import type { Route } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { newFolder } from '../support/folder.ts'
import { findFreePort } from '../support/postgres.ts'
import { releaseAfterTest } from '../support/release.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import {
  checkAccessibility,
  dialog,
  drawPauses,
  holdRequests,
  importLines,
  openForm,
  readRows,
  save,
  visitLive,
  visitPlants,
} from './visit.ts'

const dayMs = 24 * 60 * 60 * 1000

const service = await startService('sqlite::memory:')
for (let id = 1; id <= 5; id++) await service.create(`{"id":${id * 10},"name":"plant ${id}"}`)

describe('changes of others', { skip: browserMissing }, () => {
  it('appear by themselves, as changes of somebody else: own ones are told apart', async () => {
    const { page } = await visitLive(service.url)
    await service.create('{"id":25,"name":"new one","tag":"t"}')
    await page.getByText('Somebody has added plant 25.').waitFor()
    await page.locator('tr[data-mark="changed"]').getByText('new one').waitFor()
    const ids = (await readRows(page)).map(([id]) => id)
    assert.deepEqual(ids, ['10', '20', '25', '30', '40', '50'])
    await service.put(30, { name: 'renamed' })
    await page.locator('tr[data-mark="changed"]').getByText('renamed').waitFor()
    await service.call({ method: 'DELETE', path: '/plants/25' })
    await page.getByText('Somebody has deleted plant 25.').waitFor()
    assert.equal(await page.getByText('new one').count(), 0)
    await checkAccessibility(page)
    await save(await openForm(page, 'Edit plant', 10), { name: 'mine alone' })
    await page.getByText('Plant 10 saved.').waitFor()
    await service.put(20, { name: 'theirs alone' })
    await page.getByText('Somebody has changed plant 20.').waitFor()
    assert.equal(await page.locator('tr[data-mark="changed"]').getByText('mine').count(), 0)
    // The stream may tell of an own change before its answer arrives.
    await page.route('**/plants', async (route) => {
      const response = await route.fetch()
      await page.getByRole('cell', { name: 'quick', exact: true }).waitFor({ state: 'attached' })
      await route.fulfill({ response })
    })
    await save(await openForm(page, 'Add plant'), { id: '11', name: 'quick' })
    await page.getByText('Plant 11 saved.').waitFor()
    assert.equal(await page.locator('tr[data-mark="changed"]').getByText('quick').count(), 0)
    await service.call({ method: 'DELETE', path: '/plants/11' })
    await page.getByText('Somebody has deleted plant 11.').waitFor()
    // Somebody else makes the same change as this page did before.
    await service.put(10, { name: 'theirs' })
    await page.getByText('Somebody has changed plant 10.').waitFor()
    await service.put(20, { name: 'theirs again' })
    await page.getByText('Somebody has changed plant 20.').waitFor()
    await service.put(10, { name: 'mine alone' })
    await page.getByText('Somebody has changed plant 10.').waitFor()
  })

  it('come in any number, of which the list shows few, and one by one unless too many come at once', async () => {
    const crowded = await startService('sqlite::memory:')
    const { page } = await visitLive(crowded.url)
    for (let first = 1_000; first < 3_000; first += 500) {
      await importMany(crowded, first, 500)
      await page.getByText(/All plants: more than \d+/).waitFor()
    }
    const { body } = await crowded.call({ path: '/plants?limit=100' })
    const expected = JSON.parse(body).map(({ id }: { id: number }) => String(id))
    const ids = (await readRows(page)).map(([id]) => id)
    assert.deepEqual(ids.slice(0, 100), expected)
    assert.ok(ids.length <= 200, `${ids.length} rows`)

    const session = await page.context().newCDPSession(page)
    let bytes = 0
    session.on('Network.dataReceived', ({ dataLength }) => {
      bytes += dataLength
    })
    await session.send('Network.enable')
    // No timer shows any change before all have arrived.
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 60_000)
    await importMany(crowded, 0, 1_000)
    await importMany(crowded, 10_000, 2_000)
    await waitUntil(() => bytes > 3_000 * 50, 'the changes have arrived')
    const list = page.waitForResponse('**/plants?*')
    await page.clock.resume()
    await list
    await page.getByRole('cell', { name: '0', exact: true }).waitFor()
  })

  it('keep an edit from overwriting them: both versions are shown, and one chooses', async () => {
    const { page } = await visitPlants(service.url)
    for (const [choice, expected] of [
      ['Overwrite with mine', '{"id":10,"name":"mine"}'],
      ['Use theirs', '{"id":10,"name":"theirs","tag":"quick"}'],
    ] as const) {
      const form = await openForm(page, 'Edit plant', 10)
      await service.put(10, { name: 'theirs', tag: 'quick' })
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
      assert.equal(await service.read(10), expected)
    }

    // Once, although "Save" is pressed while the choice is carried out.
    const form = await openForm(page, 'Edit plant', 20)
    await service.put(20, { name: 'theirs' })
    await save(form, { name: 'mine' })
    const useMine = form.getByRole('button', { name: 'Overwrite with mine' })
    await useMine.waitFor()
    const writes = await holdRequests(page, '**/plants/20')
    await useMine.click()
    await form.getByRole('button', { name: 'Save' }).click()
    writes.release()
    await page.getByText('Plant 20 saved.').waitFor()
    assert.deepEqual(writes.methods, ['PUT'])
    assert.equal(await service.read(20), '{"id":20,"name":"mine"}')
  })

  it('are never undone unasked: a deleted plant does not come back, one never seen is not deleted', async () => {
    await service.create('{"id":60,"name":"doomed"}')
    await service.create('{"id":70,"name":"seen"}')
    const { page } = await visitPlants(service.url)
    const edit = await openForm(page, 'Edit plant', 60)
    await service.call({ method: 'DELETE', path: '/plants/60' })
    await save(edit, { name: 'revived' })
    await edit.getByRole('alert').getByText('Somebody has deleted this plant').waitFor()
    assert.match(await service.read(60), /40401/)
    await edit.getByRole('button', { name: 'Overwrite with mine' }).click()
    await edit.waitFor({ state: 'detached' })
    assert.equal(await service.read(60), '{"id":60,"name":"revived"}')

    const form = await openForm(page, 'Delete plant', 70)
    await service.put(70, { name: 'not seen yet' })
    await form.getByRole('button', { name: 'Delete' }).click()
    await form.getByText('not seen yet').waitFor()
    assert.equal(await service.read(70), '{"id":70,"name":"not seen yet"}')
    await form.getByRole('button', { name: 'Delete' }).click()
    await form.waitFor({ state: 'detached' })
    assert.match(await service.read(70), /40401/)
  })
})

/** Makes many changes at once. */
function importMany(service: TestService, first: number, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, index) => `{"id":${first + index},"name":"x"}`)
  return importLines(service, lines)
}

describe('the page in bad times', { skip: browserMissing }, () => {
  it('asks for another token when its own ends, and loses nothing that was typed or asked for', async () => {
    releaseAfterTest(() => mock.timers.reset())
    const service = await startService('sqlite::memory:')
    const [first, second] = [await service.issue(), await service.issue({ lifetimeMs: dayMs })]
    const { page } = await visitLive(service.url, { token: first.token })
    const form = await openForm(page, 'Add plant')
    await form.getByLabel('Id').fill('1')
    await form.getByLabel('Name').fill('typed before')
    const again = dialog(page, 'Sign in again')
    const reach = page.getByRole('status')

    async function signIn(token: string): Promise<void> {
      assert.equal(await page.getByText('Connection lost').count(), 0)
      await again.getByLabel('Token').fill(token)
      await again.getByRole('button', { name: 'Sign in' }).click()
      await again.waitFor({ state: 'detached' })
      await page.getByText('Live', { exact: true }).waitFor({ state: 'attached' })
    }

    await service.store.revokeToken(first.record.id, Date.now())
    await again.getByRole('alert').getByText('revoked').waitFor()
    await reach.getByText('The token was refused', { exact: true }).waitFor()
    await checkAccessibility(page)
    await signIn(second.token)
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 2 * dayMs })
    await again.getByRole('alert').getByText('expired').waitFor()
    await reach.getByText('The token has expired', { exact: true }).waitFor()
    await signIn(operatorToken)
    assert.equal(await form.getByLabel('Name').inputValue(), 'typed before')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('cell', { name: 'typed before' }).waitFor()
    await service.create('{"id":2,"name":"followed again","tag":"t"}')
    await page.getByRole('cell', { name: 'followed again' }).waitFor()

    // A filter that met the refusal is applied afterwards.
    const body = JSON.stringify({ error: 40102, message: 'The token has expired.' })
    const refuse = (route: Route) => route.fulfill({ status: 401, body })
    await page.route('**/plants?*tag=t*', refuse, { times: 1 })
    await page.getByLabel('Filter by tag').fill('t')
    await signIn(operatorToken)
    await page.getByText('with the tag “t”: 1').waitFor()
    assert.deepEqual(await readRows(page), [['2', 'followed again', 't']])
  })

  it('says "Live" only while it follows the service, and misses no change of the next one', async () => {
    const env = { PORT: String(await findFreePort()) }
    const service = await startService('sqlite::memory:', { env })
    await service.create('{"id":1,"name":"of the first store"}')
    const { page } = await visitLive(service.url)
    const [live, lost] = [
      page.getByText('Live', { exact: true }),
      page.getByText('Connection lost'),
    ]
    await drawPauses(page, 0.01)
    // The service is silent, then a proxy answers for it.
    for (const answer of [() => {}, (route: Route) => route.fulfill({ status: 502 })]) {
      await page.route('**/healthz', answer)
      await lost.waitFor()
      await page.unroute('**/healthz')
      await live.waitFor()
    }
    await service.close()
    await lost.waitFor()
    const streams = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    let isGap = false
    page.on('response', (response) => {
      isGap ||= response.status() === 410
    })
    // The first position is of another store. The second stream comes after another list.
    await page.route('**/events?*', async (route) => {
      if (isGap && route.request().headers().accept === 'text/event-stream') {
        asked.resolve()
        await streams.promise
      }
      await route.continue()
    })
    const next = await startService('sqlite::memory:', { env })
    await asked.promise
    await page.getByText('No plants yet').waitFor()
    await page.getByText('Connecting …').waitFor()
    await next.create('{"id":2,"name":"between the list and the stream"}')
    streams.resolve()
    await page.getByRole('cell', { name: 'between the list and the stream' }).waitFor()
    await live.waitFor()
    await next.create('{"id":3,"name":"followed again"}')
    await page.getByRole('cell', { name: 'followed again' }).waitFor()
    assert.equal(await page.getByRole('cell', { name: 'of the first store' }).count(), 0)
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

  it('says that the service does not answer, and continues when it does', async () => {
    const url = `sqlite:${join(newFolder(), 'plants.db')}`
    const env = { PORT: String(await findFreePort()) }
    const service = await startService(url, { env })
    const { page } = await visitLive(service.url)
    const form = await openForm(page, 'Add plant')
    await drawPauses(page, 0.9)
    await service.close()
    await save(form, { id: '1', name: 'fern, saved meanwhile' })
    const lost = page.getByText('Connection lost. Reconnecting …')
    await lost.waitFor()
    const second = await startService(url, { env })
    await page.getByRole('cell', { name: 'saved meanwhile' }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()

    // Away for longer than the page tries.
    await drawPauses(page, 0.01)
    await second.close()
    await page.getByLabel('Search by name').fill('fern')
    const problem = page.getByText('The service does not answer.')
    await problem.waitFor()
    await save(await openForm(page, 'Add plant'), { id: '2', name: 'fern' })
    await form.getByRole('alert').getByText('does not answer').waitFor()
    await lost.waitFor()
    const third = await startService(url, { env })
    await waitUntil(async () => (await problem.count()) === 0, 'both are gone')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByText('“fern”: 2').waitFor()
    await third.create('{"id":3,"name":"fern of somebody else"}')
    await page.getByText('“fern”: 3').waitFor()
  })
})
