import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { json, operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { hasFocus, importLines, readRows, visit, visitLive, visitPlants } from './visit.ts'

const count = 30_000

describe('a long list', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
    await fillService(service, count)
  })

  it('shows 100 plants at a time, how many they are, and whether more follow', async () => {
    const small = await startService('sqlite::memory:')
    await fillService(small, 200)
    const { page } = await visitPlants(small.url)
    const more = page.getByRole('button', { name: 'Show more' })
    await page.getByText('All plants: more than 100').waitFor()
    await page.getByText('Showing 100 plants, from id 1 to 100. More follow.').waitFor()
    assert.equal((await readRows(page)).length, 100)
    await more.focus()
    await page.keyboard.press('Enter')
    await page.getByText('Showing 200 plants, from id 1 to 200. No more follow.').waitFor()
    await page.getByText('All plants: 200').waitFor()
    assert.deepEqual(
      (await readRows(page)).map(([id]) => Number(id)),
      Array.from({ length: 200 }, (_, index) => index + 1),
    )
    assert.equal(await more.isVisible(), false)
    // A keyboard reads on from the first new row.
    assert.ok(await hasFocus(page, page.getByRole('row').nth(101)))
  })

  it('keeps what is on the screen in place when others change something', async () => {
    const own = await startService('sqlite::memory:')
    await fillService(own, 150)
    const { page } = await visitLive(own.url)
    const target = page.getByRole('cell', { name: '50', exact: true })
    await target.scrollIntoViewIfNeeded()
    await page.evaluate('scrollBy(0, 300)')
    const topOf = async () => (await target.boundingBox())?.y
    const top = await topOf()
    assert.ok(top !== undefined && top > 100 && top < 800, `the row is on the screen: ${top}`)
    const change = async (method: string, path: string, body?: string) => {
      await own.call({ method, path, headers: json, ...(body && { body }) })
    }
    await change('POST', '/plants', '{"id":0,"name":"before all"}')
    await page.getByText('added plant 0.').waitFor()
    assert.equal(await topOf(), top)
    await change('DELETE', '/plants/3')
    await page.getByText('deleted plant 3.').waitFor()
    assert.equal(await topOf(), top)
    await change('PUT', '/plants/7', JSON.stringify({ name: 'a name of many words '.repeat(20) }))
    await page.getByText('changed plant 7.').waitFor()
    assert.equal(await topOf(), top)
    // A file that was imported is a reason to read the list again.
    await page.getByRole('button', { name: 'Import' }).dispatchEvent('click')
    const read = page.waitForResponse((response) => response.url().includes('/plants?'))
    await page.getByRole('button', { name: 'Close' }).click()
    await (await read).finished()
    await page.getByText('Showing 100 plants').waitFor()
    assert.equal(await topOf(), top)
  })

  it('begins at an id that somebody goes to, with the fields above it in reach', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByLabel('Go to id').fill('22222')
    await page.keyboard.press('Enter')
    await page.getByRole('cell', { name: '22222', exact: true }).waitFor()
    assert.ok(await isOnScreen(page, '22222'))
    const firstId = async () => Number((await readRows(page))[0]?.[0])
    await page.evaluate('scrollTo(0, 0)')
    assert.equal(await firstId(), 22_222)
    const earlier = page.getByRole('button', { name: 'Show earlier' })
    await earlier.click()
    await waitUntil(async () => (await firstId()) === 22_122, 'rows before')
    assert.ok(await hasFocus(page, earlier))
    assert.ok(await page.getByLabel('Go to id').isVisible())
    assert.equal(await page.evaluate('scrollY'), 0)
    const ids = (await readRows(page)).map(([id]) => Number(id))
    assert.deepEqual(
      ids,
      ids.map((_, index) => 22_122 + index),
    )
    await page.getByRole('button', { name: 'Show first' }).click()
    await waitUntil(async () => (await firstId()) === 1, 'the first rows')
    assert.equal(await earlier.isVisible(), false)
    assert.ok(await hasFocus(page, page.getByRole('row').nth(1)))
  })

  it('is loaded without taking the focus from a field that is typed into meanwhile', async () => {
    const { page } = await visitLive(service.url)
    const tag = page.getByLabel('Filter by tag')

    /** Moves the focus after the rows were asked for, and before they come. */
    async function moveFocus(ask: () => Promise<void>, loaded: Locator): Promise<void> {
      const asked = Promise.withResolvers<void>()
      const held = Promise.withResolvers<void>()
      await page.route('**/plants?*', async (route) => {
        asked.resolve()
        await held.promise
        await route.continue()
      })
      await ask()
      await asked.promise
      await tag.focus()
      held.resolve()
      await loaded.waitFor()
      assert.ok(await hasFocus(page, tag))
      await page.unroute('**/plants?*')
    }

    await page.getByLabel('Go to id').fill(String(count - 500))
    await moveFocus(
      () => page.keyboard.press('Enter'),
      page.getByText(`Plant ${count - 500}.`, { exact: true }),
    )
    const first = page.getByRole('button', { name: 'Show first' })
    await moveFocus(() => first.click(), page.getByText(/from id 1 to 100/))
  })

  it('goes to an id although it is read again meanwhile', async () => {
    const { page } = await visit(service.url)
    const stream = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    await page.route('**/events?*', async (route) => {
      await stream.promise
      await route.continue()
    })
    await page.getByLabel('Token').fill(operatorToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('table').waitFor()
    await page.route('**/plants?*after=22221*', async (route) => {
      asked.resolve()
      // The list is read again when the stream is open.
      await page.getByText('Live', { exact: true }).waitFor()
      await route.continue().catch(() => {})
    })
    await page.getByLabel('Go to id').fill('22222')
    await page.keyboard.press('Enter')
    await asked.promise
    stream.resolve()
    await page.getByText('Plant 22222.', { exact: true }).waitFor()
    assert.ok(await isOnScreen(page, '22222'))
  })

  it('says that more could not be loaded, until they can', async () => {
    const { page } = await visitLive(service.url)
    let isAway = true
    await page.route('**/plants?*', (route) => (isAway ? route.abort() : route.continue()))
    await page.getByRole('button', { name: 'Show more' }).click()
    const problem = page.getByText('The service does not answer.')
    await problem.waitFor({ timeout: 60_000 })
    isAway = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Showing 200 plants').waitFor()
    await problem.waitFor({ state: 'detached' })
  })

  it('is not shown in another order than was asked for, though that cannot be loaded', async () => {
    const { page } = await visitLive(service.url)
    let isAway = true
    await page.route('**/plants?*', (route) => (isAway ? route.abort() : route.continue()))
    const first = (await readRows(page))[0]?.[0]
    await page.getByLabel('Sort by id').selectOption('desc')
    const problem = page.getByText('The service does not answer.')
    await problem.waitFor({ timeout: 60_000 })
    assert.deepEqual(await readRows(page), [])
    isAway = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText(/^Showing/).waitFor()
    assert.ok(BigInt((await readRows(page))[0]?.[0] ?? 0) > BigInt(first ?? 0))
  })

  it('names the nearest plant where none has the id', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByLabel('Go to id').fill('999999999')
    await page.keyboard.press('Enter')
    await page.getByText(`No plant has the id 999999999. The previous one is ${count}.`).waitFor()
    assert.ok(await isOnScreen(page, String(count)))
    await page.getByLabel('Go to id').fill('-7')
    await page.keyboard.press('Enter')
    await page.getByText('No plant has the id -7. The next one is 1.').waitFor()
  })
})

/** Stores plants with the ids from 1 on. */
function fillService(service: TestService, plants: number): Promise<void> {
  const lines = Array.from({ length: plants }, (_, index) => `{"id":${index + 1},"name":"p"}`)
  return importLines(service, lines)
}

async function isOnScreen(page: Page, id: string): Promise<boolean> {
  const box = await page.getByRole('cell', { name: id, exact: true }).boundingBox()
  return box !== null && box.y > 0 && box.y < 800
}
