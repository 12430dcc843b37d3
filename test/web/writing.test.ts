import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import {
  checkAccessibility,
  dialog,
  hasFocus,
  holdRequests,
  openForm,
  readRows,
  save,
  visitPlants,
} from './visit.ts'

const largest = 2n ** 63n - 1n

describe('writing on the page', { skip: browserMissing }, () => {
  let service: TestService
  beforeEach(async () => {
    service = await startService('sqlite::memory:')
    for (const id of [1, 2, 3]) await service.create(`{"id":${id},"name":"plant ${id}","tag":"t"}`)
  })

  it('proposes an id that is free, and takes what one types instead', async () => {
    const { page } = await visitPlants(service.url)
    const form = dialog(page, 'Add plant')
    const expectProposal = async (id: bigint) => {
      await page.getByRole('button', { name: 'Add plant' }).click()
      await waitUntil(
        async () => (await form.getByLabel('Id').inputValue()) === String(id),
        `${id} is proposed`,
      )
    }
    await expectProposal(4n)
    await page.keyboard.type('12')
    await save(form, { name: 'typed' })
    await page.getByText('Plant 12 saved.').waitFor()
    await expectProposal(13n)
    await save(form, { name: 'proposed' })
    await page.getByText('Plant 13 saved.').waitFor()
    for (const id of [largest, largest - 1n, largest - 3n]) {
      await service.create(`{"id":${id},"name":"at the end"}`)
    }
    await expectProposal(largest - 2n)
    await form.getByRole('button', { name: 'Cancel' }).click()

    // Nothing is proposed into a field that somebody has typed into.
    const id = form.getByLabel('Id')
    for (const [keys, expected] of [
      [['7'], '7'],
      [['7', 'Backspace'], ''],
    ] as const) {
      const proposal = await holdRequests(page, '**/plants?*order=desc*')
      await page.getByRole('button', { name: 'Add plant' }).click()
      for (const key of keys) await id.press(key)
      const proposed = page.waitForResponse('**/plants?*order=desc*')
      proposal.release()
      await (await proposed).finished()
      // A later answer: the page has used the earlier one by then.
      await page.evaluate(`fetch('healthz').then((answer) => answer.text())`)
      assert.equal(await id.inputValue(), expected)
      await form.getByRole('button', { name: 'Cancel' }).click()
      await page.unrouteAll()
    }
  })

  it('undoes a delete and an edit, and keeps the focus in the list', async () => {
    const { page } = await visitPlants(service.url)
    const form = await openForm(page, 'Delete plant', 2)
    await checkAccessibility(page)
    await form.getByRole('button', { name: 'Cancel' }).click()
    await deletePlant(page, 2)
    assert.match(await service.read(2), /40401/)
    const row = page.getByRole('cell', { name: 'plant 2', exact: true })
    await row.waitFor({ state: 'detached' })
    assert.ok(await hasFocus(page, page.getByRole('row', { name: 'plant 3' })))
    await checkAccessibility(page)
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Plant 2 is as it was before.').waitFor()
    await row.waitFor()
    assert.equal(await service.read(2), '{"id":2,"name":"plant 2","tag":"t"}')
    assert.ok(await hasFocus(page, page.getByRole('row', { name: 'plant 2' })))
    await save(await openForm(page, 'Edit plant', 3), { name: 'renamed', tag: '' })
    await page.getByText('Plant 3 saved.').waitFor()
    assert.ok(await hasFocus(page, page.getByRole('button', { name: 'Edit plant 3' })))
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('cell', { name: 'plant 3', exact: true }).waitFor()
    assert.equal(await service.read(3), '{"id":3,"name":"plant 3","tag":"t"}')
    assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)
  })

  it('takes a double click for one', async () => {
    const { page } = await visitPlants(service.url)
    /** Clicks twice before anything is answered. Returns the requests that followed. */
    const dblclick = async (name: string) => {
      let answered = 0
      page.on('requestfinished', (request) => {
        if (request.url().endsWith('/plants/1')) answered++
      })
      const { methods, release } = await holdRequests(page, '**/plants/1')
      await page.getByRole('button', { name }).dblclick()
      release()
      await waitUntil(() => methods.length > 0 && answered === methods.length, 'all is answered')
      await page.unrouteAll({ behavior: 'wait' })
      return methods
    }
    for (const [button, title] of [
      ['Edit plant 1', 'Edit plant'],
      ['Delete plant 1', 'Delete plant'],
    ] as const) {
      await dblclick(button)
      await dialog(page, title).first().getByRole('button', { name: 'Cancel' }).click()
      // No other dialog is left over the page.
      await page.getByRole('button', { name: 'Sign out' }).click({ trial: true })
    }
    await save(await openForm(page, 'Edit plant', 1), { name: 'mine' })
    await page.getByText('Plant 1 saved.').waitFor()
    assert.deepEqual(await dblclick('Undo'), ['PUT'])
    await page.getByText('Plant 1 is as it was before.').waitFor()
    assert.equal(await service.read(1), '{"id":1,"name":"plant 1","tag":"t"}')
  })

  it('undoes nothing that somebody else has changed since', async () => {
    const { page } = await visitPlants(service.url)
    await save(await openForm(page, 'Edit plant', 1), { name: 'mine' })
    await page.getByText('Plant 1 saved.').waitFor()
    await service.put(1, { name: 'theirs' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('alert').getByText('Somebody else has changed plant 1').waitFor()
    assert.equal(await service.read(1), '{"id":1,"name":"theirs"}')
    await deletePlant(page, 2)
    await service.put(2, { name: 'there again' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('alert').getByText('Somebody else has changed plant 2').waitFor()
    assert.equal(await service.read(2), '{"id":2,"name":"there again"}')
  })

  it('says that a plant was gone if somebody else has deleted it, and offers no “Undo”', async () => {
    const { page } = await visitPlants(service.url)
    const form = dialog(page, 'Delete plant')
    const gone = (id: number) => page.getByText(`Plant ${id} was already gone.`)
    await openForm(page, 'Delete plant', 1)
    await service.call({ method: 'DELETE', path: '/plants/1' })
    await form.getByRole('button', { name: 'Delete' }).click()
    await gone(1).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)
    assert.equal((await readRows(page)).length, 2)

    // Changed and deleted while the request was under way.
    await openForm(page, 'Delete plant', 2)
    await service.put(2, { name: 'theirs' })
    await page.route('**/plants/2', async (route) => {
      const isRead = route.request().method() === 'GET'
      if (isRead) await service.call({ method: 'DELETE', path: '/plants/2' })
      await route.continue()
    })
    await form.getByRole('button', { name: 'Delete' }).click()
    await gone(2).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)

    // Seen in a conflict of edits.
    const edit = await openForm(page, 'Edit plant', 3)
    await service.call({ method: 'DELETE', path: '/plants/3' })
    await save(edit, { name: 'mine' })
    await page.getByRole('button', { name: 'Use theirs' }).click()
    await gone(3).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0)
  })

  it('says what was done although the answer was lost or "Cancel" was pressed, and undoes it', async () => {
    const { page } = await visitPlants(service.url)
    const form = await openForm(page, 'Delete plant', 1)
    const lose = async (route: Route) => {
      await service.call({ method: 'DELETE', path: '/plants/1' })
      await route.abort('connectionreset')
    }
    await page.route('**/plants/1', lose, { times: 1 })
    await form.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Plant 1 deleted.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Plant 1 is as it was before.').waitFor()
    assert.equal(await service.read(1), '{"id":1,"name":"plant 1","tag":"t"}')

    const answers = Promise.withResolvers<void>()
    const stored = Promise.withResolvers<void>()
    await page.route('**/plants/3', async (route) => {
      const response = await route.fetch()
      if (route.request().method() === 'PUT') {
        stored.resolve()
        await answers.promise
      }
      await route.fulfill({ response })
    })
    const before = await service.read(3)
    const edit = await openForm(page, 'Edit plant', 3)
    await save(edit, { name: 'saved after all' })
    await stored.promise
    await edit.getByRole('button', { name: 'Cancel' }).click()
    await edit.waitFor({ state: 'detached' })
    answers.resolve()
    await page.getByText('Plant 3 saved.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Plant 3 is as it was before.').waitFor()
    assert.equal(await service.read(3), before)
  })

  it('asks before Escape throws away what was typed', async () => {
    const { page } = await visitPlants(service.url)
    const form = await openForm(page, 'Edit plant', 1)
    await page.keyboard.press('Escape')
    await form.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Edit plant 1' }).click()
    await form.getByLabel('Name').pressSequentially(' and more')
    await page.keyboard.press('Escape')
    await form.getByRole('alert').getByText('What you typed is not saved').waitFor()
    assert.equal(await form.getByLabel('Name').inputValue(), 'plant 1 and more')
    await checkAccessibility(page)
    await form.getByRole('button', { name: 'Discard' }).click()
    await form.waitFor({ state: 'detached' })
    assert.deepEqual((await readRows(page))[0], ['1', 'plant 1', 't'])
  })
})

async function deletePlant(page: Page, id: number): Promise<void> {
  const form = await openForm(page, 'Delete plant', id)
  await form.getByRole('button', { name: 'Delete' }).click()
  await page.getByText(`Plant ${id} deleted.`).waitFor()
}
