import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { operatorToken, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import {
  checkAccessibility,
  drawPauses,
  hasFocus,
  holdRequests,
  importLines,
  openForm,
  readRows,
  save,
  visit,
  visitLive,
  visitPlants,
} from './visit.ts'

const count = 30_000

const service = await startService('sqlite::memory:')
const names: Record<number, string> = { 7: 'Monstera', 22000: 'SALMON', 29000: '100 %_*' }
const lines = Array.from({ length: count }, (_, index) => {
  const name = names[index + 1] ?? `plain ${index + 1}`
  return JSON.stringify({ id: index + 1, name, tag: index % 2 ? 'odd' : 'even' })
})
await importLines(service, lines)

describe('a long list', { skip: browserMissing }, () => {
  const readIds = async (page: Page) => (await readRows(page)).map(([id]) => Number(id))

  async function goTo(page: Page, id: string): Promise<void> {
    await page.getByLabel('Go to id').fill(id)
    await page.getByLabel('Go to id').press('Enter')
  }

  it('shows 100 plants at a time, and keeps what is on the screen in place', async () => {
    const own = await startService('sqlite::memory:')
    const lines = Array.from({ length: 200 }, (_, index) => `{"id":${index + 1},"name":"p"}`)
    await importLines(own, lines)
    const { page } = await visitLive(own.url)
    const more = page.getByRole('button', { name: 'Show more' })
    await page.getByText('All plants: more than 100').waitFor()
    await page.getByText('Showing 100 plants, from id 1 to 100. More follow.').waitFor()
    assert.equal((await readRows(page)).length, 100)
    await more.focus()
    await page.keyboard.press('Enter')
    await page.getByText('Showing 200 plants, from id 1 to 200. No more follow.').waitFor()
    await page.getByText('All plants: 200').waitFor()
    const all = Array.from({ length: 200 }, (_, index) => index + 1)
    assert.deepEqual(await readIds(page), all)
    assert.equal(await more.isVisible(), false)
    // A keyboard reads on from the first new row.
    assert.ok(await hasFocus(page, page.getByRole('row').nth(101)))

    const target = page.getByRole('cell', { name: '50', exact: true })
    await target.scrollIntoViewIfNeeded()
    await page.evaluate('scrollBy(0, 300)')
    const topOf = async () => (await target.boundingBox())?.y
    const top = await topOf()
    assert.ok(top !== undefined && top > 100 && top < 800, `the row is on the screen: ${top}`)
    await own.create('{"id":0,"name":"before all"}')
    await page.getByText('added plant 0.').waitFor()
    assert.equal(await topOf(), top)
    await own.call({ method: 'DELETE', path: '/plants/3' })
    await page.getByText('deleted plant 3.').waitFor()
    assert.equal(await topOf(), top)
    await own.put(7, { name: 'a name of many words '.repeat(20) })
    await page.getByText('changed plant 7.').waitFor()
    assert.equal(await topOf(), top)
    // A file that was imported is a reason to read the list again.
    await page.getByRole('button', { name: 'Import' }).dispatchEvent('click')
    const read = page.waitForResponse((response) => response.url().includes('/plants?'))
    await page.getByRole('button', { name: 'Close' }).click()
    await (await read).finished()
    await page.getByText('Showing 200 plants').waitFor()
    assert.equal(await topOf(), top)
  })

  it('begins at an id that somebody goes to, with the fields above it in reach', async () => {
    const { page } = await visitPlants(service.url)
    await goTo(page, '22222')
    await page.getByRole('cell', { name: '22222', exact: true }).waitFor()
    assert.ok(await isOnScreen(page, '22222'))
    const firstId = async () => (await readIds(page))[0]
    await page.evaluate('scrollTo(0, 0)')
    assert.equal(await firstId(), 22_222)
    const earlier = page.getByRole('button', { name: 'Show earlier' })
    await earlier.click()
    await waitUntil(async () => (await firstId()) === 22_122, 'rows before')
    assert.ok(await hasFocus(page, earlier))
    assert.ok(await page.getByLabel('Go to id').isVisible())
    assert.equal(await page.evaluate('scrollY'), 0)
    const ids = await readIds(page)
    const ascending = ids.map((_, index) => 22_122 + index)
    assert.deepEqual(ids, ascending)
    await page.getByRole('button', { name: 'Show first' }).click()
    await waitUntil(async () => (await firstId()) === 1, 'the first rows')
    assert.equal(await earlier.isVisible(), false)
    assert.ok(await hasFocus(page, page.getByRole('row').nth(1)))
  })

  it('is loaded without taking the focus from a field that is typed into meanwhile', async () => {
    const { page } = await visitLive(service.url)
    const tag = page.getByLabel('Filter by tag')
    const first = page.getByRole('button', { name: 'Show first' })
    for (const [ask, loaded] of [
      [() => goTo(page, '29500'), page.getByText('Plant 29500.', { exact: true })],
      [() => first.click(), page.getByText(/from id 1 to 100/)],
    ] as const) {
      const rows = await holdRequests(page, '**/plants?*')
      await ask()
      await rows.asked
      await tag.focus()
      rows.release()
      await loaded.waitFor()
      assert.ok(await hasFocus(page, tag))
      await page.unroute('**/plants?*')
    }
  })

  it('goes to an id although it is read again meanwhile', async () => {
    const { page } = await visit(service.url)
    const stream = await holdRequests(page, '**/events?*')
    await page.getByLabel('Token').fill(operatorToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('table').waitFor()
    const rows = await holdRequests(page, '**/plants?*after=22221*')
    await goTo(page, '22222')
    await rows.asked
    // The list is read again when the stream is open.
    stream.release()
    await page.getByText('Live', { exact: true }).waitFor()
    rows.release()
    await page.getByText('Plant 22222.', { exact: true }).waitFor()
    assert.ok(await isOnScreen(page, '22222'))
  })

  it('says that plants could not be loaded, and shows none in another order than asked for', async () => {
    const { page } = await visitLive(service.url)
    await drawPauses(page, 0.01)
    const problem = page.getByText('The service does not answer.')
    const tryAgain = page.getByRole('button', { name: 'Try again' })
    await page.route('**/plants?*', (route) => route.abort())
    await page.getByRole('button', { name: 'Show more' }).click()
    await problem.waitFor()
    await page.unroute('**/plants?*')
    await tryAgain.click()
    await page.getByText('Showing 200 plants').waitFor()
    await problem.waitFor({ state: 'detached' })
    await page.route('**/plants?*', (route) => route.abort())
    await page.getByLabel('Sort by id').selectOption('desc')
    await problem.waitFor()
    assert.deepEqual(await readRows(page), [])
    await page.unroute('**/plants?*')
    await tryAgain.click()
    await page.getByText(/^Showing/).waitFor()
    assert.equal((await readIds(page))[0], count)
  })

  it('says that a plant is saved although the list cannot be loaded then, and loads it again', async () => {
    const { page } = await visitPlants(service.url)
    await drawPauses(page, 0.01)
    const form = await openForm(page, 'Add plant')
    await waitUntil(async () => (await form.getByLabel('Id').inputValue()) !== '', 'an id')
    await page.route('**/plants?*', (route) => route.abort())
    await save(form, { id: '15000000', name: 'far away' })
    await page.getByText('Plant 15000000 saved.').waitFor()
    await page.getByText('The service does not answer.').waitFor()
    await page.unroute('**/plants?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('cell', { name: 'far away' }).waitFor()
    assert.equal(await form.count(), 0)
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Plant 15000000 is as it was before.').waitFor()
  })

  it('says why the service refuses a search, and searches for the next text', async () => {
    const { page } = await visitPlants(service.url)
    const search = page.getByLabel('Search by name')
    await search.fill('x'.repeat(1_001))
    await page.getByRole('alert').getByText('at most 1000 characters').waitFor()
    assert.equal((await search.inputValue()).length, 1_001)
    await search.fill('no such name')
    await page.getByText('No plant has this name').waitFor()
    assert.equal(await page.getByRole('alert').getByText('characters').count(), 0)
  })

  it('names the nearest plant where the list has none with the id', async () => {
    const { page } = await visitPlants(service.url)
    await goTo(page, '999999999')
    await page.getByText(`No plant has the id 999999999. The previous one is ${count}.`).waitFor()
    assert.ok(await isOnScreen(page, String(count)))
    await goTo(page, '-7')
    await page.getByText('No plant has the id -7. The next one is 1.').waitFor()
    // The list is only a part of the plants.
    await page.getByLabel('Filter by tag').fill('odd')
    await page.getByText('Plants with the tag “odd”: more than 100').waitFor()
    await goTo(page, '7')
    await page.getByText('No plant of this list has the id 7. The next one is 8.').waitFor()
    await page.getByLabel('Search by name').fill('no such name')
    await page.getByText('No plant has this name and tag').waitFor()
    await goTo(page, '9')
    await page.getByText('No plant of this list has the id 9.').waitFor()
    await page.getByLabel('Filter by tag').fill('')
    await page.getByLabel('Search by name').fill('plain 1')
    await page.getByText('“plain 1”: more than 100').waitFor()
    await goTo(page, '9000000')
    await page.getByText('No plant of this list has the id 9000000.').waitFor()
    await page.getByText('The previous one is 19999.').waitFor()
    assert.equal((await readIds(page)).at(-1), 19_999)
  })

  it('shows what a search finds as it is found and how far it has come, 100 plants at a time', async () => {
    const { page, requests } = await visitPlants(service.url)
    const gate = Promise.withResolvers<void>()
    let parts = 0
    await page.route(/name=mon/, async (route) => {
      if (++parts === 4) await gate.promise
      await route.continue()
    })
    await page.getByLabel('Search by name').pressSequentially('mon')
    await page.getByText('“mon”: 1 so far, about 15,000 searched …').waitFor()
    assert.deepEqual(await readIds(page), [7])
    gate.resolve()
    await page.getByText('Plants whose name contains “mon”: 2', { exact: true }).waitFor()
    assert.deepEqual(await readIds(page), [7, 22_000])
    await checkAccessibility(page)
    await page.getByLabel('Search by name').fill('%_*')
    await page.getByText('contains “%_*”: 1').waitFor()
    assert.deepEqual(await readIds(page), [29_000])
    await page.getByLabel('Search by name').fill('cactus')
    await page.getByRole('heading', { name: 'No plant has this name' }).waitFor()
    await page.getByLabel('Search by name').fill('')
    await page.getByText('All plants: more than 100').waitFor()
    await page.getByText('Showing 100 plants, from id 1 to 100. More follow.').waitFor()
    await page.getByLabel('Search by name').fill('PLAIN')
    await page.getByText('“PLAIN”: more than 100').waitFor()
    const searches = () => requests.filter((request) => request.includes('name=PLAIN')).length
    assert.equal(searches(), 1)
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.getByText('“PLAIN”: more than 200').waitFor()
    assert.equal(searches(), 2)
  })

  it('follows the changes of others: who gets the name or the tag comes, who loses it goes', async () => {
    const { page } = await visitLive(service.url)
    for (const [label, text, tag] of [
      ['Search by name', 'σ', undefined],
      ['Filter by tag', 'special', 'special'],
    ] as const) {
      await page.getByLabel(label).fill(text)
      const none = page.getByRole('heading', { name: 'No plant has this' })
      await none.waitFor()
      await service.put(500, { name: 'ΡΟΔΟΣ', tag })
      await page.getByRole('cell', { name: 'ΡΟΔΟΣ' }).waitFor()
      await service.put(500, { name: 'plain 500', tag: 'odd' })
      await none.waitFor()
      await page.getByLabel(label).fill('')
    }
  })

  it('shows what was changed while its rows were on their way', async () => {
    const { page } = await visitLive(service.url)
    await goTo(page, '29500')
    await page.getByText('Plant 29500.', { exact: true }).waitFor()
    await page.route('**/plants?*', async (route) => {
      const response = await route.fetch()
      for (const id of [2, 29_501]) await service.put(id, { name: `changed ${id}`, tag: 'odd' })
      await page.getByRole('cell', { name: 'changed 29501' }).waitFor()
      await route.fulfill({ response })
    })
    await page.getByRole('button', { name: 'Show first' }).click()
    await page.getByRole('cell', { name: 'changed 2', exact: true }).waitFor()
  })

  it('is sorted by id both ways', async () => {
    const { page } = await visitLive(service.url)
    await page.getByLabel('Sort by id').selectOption('Largest first')
    await waitUntil(async () => (await readIds(page))[0] === count, 'the largest comes first')
    await checkAccessibility(page)
    const order = await page.getByRole('columnheader').first().getAttribute('aria-sort')
    assert.equal(order, 'descending')
    await service.create(`{"id":${count + 1},"name":"newest"}`)
    await page.getByRole('cell', { name: 'newest' }).waitFor()
    assert.equal((await readIds(page))[0], count + 1)
    await service.call({ method: 'DELETE', path: `/plants/${count + 1}` })
    await goTo(page, '15000')
    await waitUntil(async () => (await readIds(page))[0] === 15_000, 'the list begins there')
    await page.getByRole('button', { name: 'Show earlier' }).click()
    await waitUntil(async () => (await readIds(page))[0] === 15_100, 'larger ones')
    const ids = await readIds(page)
    const descending = ids.map((_, index) => 15_100 - index)
    assert.deepEqual(ids, descending)
  })
})

async function isOnScreen(page: Page, id: string): Promise<boolean> {
  const box = await page.getByRole('cell', { name: id, exact: true }).boundingBox()
  return box !== null && box.y > 0 && box.y < 800
}
