import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { json, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { checkAccessibility, importLines, readRows, visitLive, visitPlants } from './visit.ts'

const count = 30_000

describe('a list that is searched and sorted', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
    const names: Record<number, string> = { 7: 'Monstera', 22000: 'SALMON', 29000: '100 %_*' }
    const lines = Array.from({ length: count }, (_, index) => {
      const name = names[index + 1] ?? `plain ${index + 1}`
      return JSON.stringify({ id: index + 1, name, tag: index % 2 ? 'odd' : 'even' })
    })
    await importLines(service, lines)
  })

  async function readIds(page: Page): Promise<number[]> {
    return (await readRows(page)).map(([id]) => Number(id))
  }

  function put(id: number, name: string) {
    const body = JSON.stringify({ name })
    return service.call({ method: 'PUT', path: `/plants/${id}`, headers: json, body })
  }

  it('shows what is found as it is found, and how far the search has come', async () => {
    const { page } = await visitPlants(service.url)
    const gate = Promise.withResolvers<void>()
    let requests = 0
    await page.route(/name=mon/, async (route) => {
      if (++requests === 4) await gate.promise
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
  })

  it('stops after 100 plants, and goes on with “Show more”', async () => {
    const { page, requests } = await visitPlants(service.url)
    await page.getByLabel('Search by name').fill('PLAIN')
    await page.getByText('“PLAIN”: more than 100').waitFor()
    const searches = () => requests.filter((request) => request.includes('name=PLAIN')).length
    assert.equal(searches(), 1)
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.getByText('“PLAIN”: more than 200').waitFor()
    assert.equal(searches(), 2)
  })

  it('follows the changes of others: who gets the name comes, who loses it goes', async () => {
    const { page } = await visitLive(service.url)
    await page.getByLabel('Search by name').fill('σ')
    await page.getByRole('heading', { name: 'No plant has this name' }).waitFor()
    await put(500, 'ΡΟΔΟΣ')
    await page.getByRole('cell', { name: 'ΡΟΔΟΣ' }).waitFor()
    await put(500, 'plain 500')
    await page.getByRole('heading', { name: 'No plant has this name' }).waitFor()
  })

  it('is sorted by id both ways', async () => {
    const { page } = await visitLive(service.url)
    await page.getByLabel('Sort by id').selectOption('Largest first')
    await waitUntil(async () => (await readIds(page))[0] === count, 'the largest comes first')
    await checkAccessibility(page)
    assert.equal(
      await page.getByRole('columnheader').first().getAttribute('aria-sort'),
      'descending',
    )
    await service.create(`{"id":${count + 1},"name":"newest"}`)
    await page.getByRole('cell', { name: 'newest' }).waitFor()
    assert.equal((await readIds(page))[0], count + 1)
    await service.call({ method: 'DELETE', path: `/plants/${count + 1}` })
    await page.getByLabel('Go to id').fill('15000')
    await page.keyboard.press('Enter')
    await waitUntil(async () => (await readIds(page))[0] === 15_000, 'the list begins there')
    await page.getByRole('button', { name: 'Show earlier' }).click()
    await waitUntil(async () => (await readIds(page))[0] === 15_100, 'larger ones')
    const ids = await readIds(page)
    assert.deepEqual(
      ids,
      ids.map((_, index) => 15_100 - index),
    )
  })

  it('shows the last plants where nothing is found from an id on', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByLabel('Search by name').fill('plain 1')
    await page.getByText('“plain 1”: more than 100').waitFor()
    await page.getByLabel('Go to id').fill('9000000')
    await page.keyboard.press('Enter')
    await page.getByText('No plant of this list has the id 9000000.').waitFor()
    await page.getByText('The previous one is 19999.').waitFor()
    assert.equal((await readIds(page)).at(-1), 19_999)
  })

  it('does not say that a plant is absent which is only not in the list', async () => {
    const { page } = await visitPlants(service.url)
    const goTo = page.getByLabel('Go to id')
    await page.getByLabel('Filter by tag').fill('odd')
    await page.getByText('Plants with the tag “odd”: more than 100').waitFor()
    await goTo.fill('7')
    await goTo.press('Enter')
    await page.getByText('No plant of this list has the id 7. The next one is 8.').waitFor()
    await page.getByLabel('Search by name').fill('no such name')
    await page.getByText('No plant has this name and tag').waitFor()
    await goTo.fill('9')
    await goTo.press('Enter')
    await page.getByText('No plant of this list has the id 9.').waitFor()
  })
})
