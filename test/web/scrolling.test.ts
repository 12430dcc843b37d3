import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { isLong, scale } from '../faults/lab/scale.ts'
import { browserMissing } from '../support/browser.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { hasFocus, readRows, visit, visitPlants } from './visit.ts'

const count = scale(30_000, 100_000)
const title = `${count.toLocaleString('en')} plants`

describe(title, { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
    const lines = Array.from({ length: count }, (_, index) => `{"id":${index + 1},"name":"p"}\n`)
    const { body } = await service.call({
      method: 'POST',
      path: '/plants.ndjson',
      headers: { 'Content-Type': 'application/x-ndjson' },
      body: lines.join(''),
    })
    assert.equal(JSON.parse(body).stored, count)
  })

  it('are scrolled to the end without losing one, with at most 400 rows in the document', async () => {
    const { page, errors } = await visitPlants(service.url)
    // The long form shows each row once; the short one jumps from end to end of what is loaded.
    const stepPx = isLong ? 4_000 : 1_000_000
    const { seen, most } = await page.evaluate<{ seen: number; most: number }>(`(async () => {
      const ids = new Set()
      let most = 0
      // To paint what nobody looks at would take most of the time.
      document.body.style.visibility = 'hidden'
      for (let top = 0; !ids.has('${count}'); ) {
        scrollTo(0, top)
        dispatchEvent(new Event('scroll'))
        const rows = document.querySelectorAll('tbody tr')
        most = Math.max(most, rows.length)
        for (const row of rows) ids.add(row.cells[0].textContent)
        const end = document.documentElement.scrollHeight - innerHeight
        const isAtEnd = top >= end
        top = Math.min(top + ${stepPx}, end)
        await new Promise((resolve) => setTimeout(resolve, isAtEnd ? 10 : 0))
      }
      document.body.style.visibility = ''
      return { seen: ids.size, most }
    })()`)
    if (isLong) assert.equal(seen, count)
    assert.ok(most <= 400, `${most} rows in the document`)
    // As many rows as plants, in ascending order, up to the last: then none is missing.
    await page.getByText(title).waitFor()
    const last = page.getByRole('row').last()
    assert.equal(await last.getAttribute('aria-rowindex'), String(count + 1))
    assert.match((await last.textContent()) ?? '', new RegExp(`^${count}p`))
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight / 2)')
    await waitUntil(
      async () => Number((await readRows(page))[0]?.[0]) < count - 1_000,
      'the middle',
    )
    const shown = await readRows(page)
    const first = await page.locator('tbody tr').first().getAttribute('aria-rowindex')
    assert.deepEqual(
      shown.map(([id]) => Number(id)),
      shown.map((_, index) => Number(first) - 1 + index),
    )
    assert.deepEqual(errors, [])
  })

  it('are reached by id, and the fields above the list from there', async () => {
    const { page, errors } = await visitPlants(service.url)
    await page.getByLabel('Go to id').fill('22222')
    await page.keyboard.press('Enter')
    await page.getByRole('cell', { name: '22222', exact: true }).waitFor()
    assert.ok(await isOnScreen(page, '22222'))
    const firstId = async () => Number((await readRows(page))[0]?.[0])
    await page.mouse.move(600, 500)
    await waitUntil(async () => {
      await page.mouse.wheel(0, -4_000)
      return (await page.evaluate('scrollY')) === 0
    }, 'the list does not grow upwards')
    assert.equal(await firstId(), 22_222)
    const earlier = page.getByRole('button', { name: 'Show earlier' })
    await earlier.click()
    await waitUntil(async () => (await firstId()) === 22_022, 'rows before')
    assert.ok(await hasFocus(page, earlier))
    assert.ok(await page.getByLabel('Go to id').isVisible())
    assert.equal(await page.evaluate('scrollY'), 0)
    const ids = (await readRows(page)).map(([id]) => Number(id))
    assert.deepEqual(
      ids,
      ids.map((_, index) => 22_022 + index),
    )
    await page.getByRole('button', { name: 'Show first' }).click()
    await waitUntil(async () => (await firstId()) === 1, 'the first rows')
    assert.equal(await earlier.count(), 0)
    assert.ok(await hasFocus(page, page.getByRole('row').nth(1)))
    assert.deepEqual(errors, [])
  })

  it('are loaded without taking the focus from a field that is typed into meanwhile', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByText('Live', { exact: true }).waitFor()
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
    await moveFocus(() => first.click(), page.getByText(/from id 1 to/))
  })

  it('are reached by id although the list is read again meanwhile', async () => {
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

  it('stay in place when the list is read again', async () => {
    const { page } = await visitPlants(service.url)
    // 44 pixels a row.
    const top = 2_000 * 44
    await waitUntil(async () => {
      await page.evaluate(`scrollTo(0, ${top})`)
      return (await page.evaluate('scrollY')) === top
    }, 'so many are loaded')
    await page.getByRole('cell', { name: '2000', exact: true }).waitFor()
    const id = await page.evaluate<string>(
      `document.elementFromPoint(300, 160).closest('tr').cells[0].textContent`,
    )
    // A file that was imported is a reason to read the list again.
    await page.getByRole('button', { name: 'Import' }).dispatchEvent('click')
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Show earlier' }).waitFor()
    await waitUntil(() => isOnScreen(page, id), `${id} is still on the screen`)
  })

  it('say that more could not be loaded, for as long as that is so', async () => {
    const { page, errors } = await visitPlants(service.url)
    await page.getByText('Live', { exact: true }).waitFor()
    let isAway = true
    await page.route('**/plants?*', (route) => (isAway ? route.abort() : route.continue()))
    await page.mouse.move(600, 500)
    await page.mouse.wheel(0, 100_000)
    const problem = page.getByText('The service does not answer.')
    await problem.waitFor({ timeout: 60_000 })
    isAway = false
    await page.mouse.wheel(0, -300)
    await problem.waitFor({ state: 'detached' })
    isAway = true
    await page.mouse.wheel(0, 100_000)
    await problem.waitFor({ timeout: 60_000 })
    isAway = false
    await page.getByRole('button', { name: 'Try again' }).click()
    await problem.waitFor({ state: 'detached' })
    assert.deepEqual(
      errors.filter((error) => !error.includes('ERR_FAILED')),
      [],
    )
  })

  it('are not shown in another order than was asked for, though that cannot be loaded', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByText('Live', { exact: true }).waitFor()
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

  it('name the nearest plant where none has the id', async () => {
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

async function isOnScreen(page: Page, id: string): Promise<boolean> {
  const box = await page.getByRole('cell', { name: id, exact: true }).boundingBox()
  return box !== null && box.y > 0 && box.y < 800
}
