import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { newKey, startIssuer } from '../support/issuer.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import {
  checkAccessibility,
  dialog,
  hasFocus,
  holdRequests,
  openForm,
  readRows,
  save,
  tabTo,
  visit,
  visitPlants,
} from './visit.ts'

const smallest = '-9223372036854775808'
const largest = '9223372036854775807'

describe('signing in', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
    await service.create('{"id":1,"name":"Monstera","tag":"indoor"}')
  })

  it('keeps the token for the tab: after a reload, not in another tab, not after "Sign out"', async () => {
    const { page } = await visit(service.url)
    await checkAccessibility(page)
    await page.getByLabel('Token').fill(`  ${operatorToken} `)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const cell = page.getByRole('cell', { name: 'Monstera' })
    await cell.waitFor()
    await page.reload()
    await cell.waitFor()
    const other = await visit(service.url)
    await other.page.getByLabel('Token').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await page.evaluate('sessionStorage.length + localStorage.length'), 0)
  })

  it('takes the token of a link out of the address bar, and keeps it when a link brings a wrong one', async () => {
    const { page, requests } = await visitPlants(service.url)
    assert.equal(page.url(), `${service.url}/`)
    assert.ok(requests.every((request) => !request.includes(operatorToken)))
    assert.ok(requests.every((request) => request.includes(` ${service.url}/`)))
    await page.goto(`${service.url}/#token=of-somebody-else`)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.reload()
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()

    // "Back" brings the page as it was, unless another page of this tab has signed out meanwhile.
    const goBack = `dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`
    await page.evaluate(goBack)
    await page.getByRole('table').waitFor()
    await page.evaluate('sessionStorage.clear()')
    await page.evaluate(goBack)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await page.getByRole('table').count(), 0)
  })

  it('takes a JSON Web Token, and shows no way to write that it lacks the scope for', async () => {
    const key = await newKey('ES256')
    const issuer = await startIssuer([key])
    const trusting = await startService('sqlite::memory:', { env: issuer.env })
    await trusting.create('{"id":1,"name":"Monstera"}')
    const token = await issuer.sign(key, { scope: 'plants:read' })
    const { page } = await visitPlants(trusting.url, { token })
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()
    const buttons = page.getByRole('button').filter({ visible: true })
    assert.deepEqual(await buttons.allTextContents(), ['Sign out', 'Export'])
  })

  it('forgets the token of a link when another one comes before it is answered', async () => {
    const { token } = await service.issue()
    const { page } = await visit(service.url)
    const first = await holdRequests(page, '**/plants?*')
    await page.goto(`${service.url}/#token=${operatorToken}`)
    await first.asked
    await page.unroute('**/plants?*')
    await page.goto(`${service.url}/#token=${token}`)
    await page.getByText('Live', { exact: true }).waitFor()
    const sent: (string | undefined)[] = []
    page.on('request', (request) => sent.push(request.headers().authorization))
    first.release()
    await page.getByLabel('Search by name').fill('Mon')
    await page.getByText('whose name contains “Mon”: 1').waitFor()
    assert.ok(sent.every((authorization) => !authorization?.endsWith(operatorToken)))
    assert.equal(await page.evaluate(`sessionStorage.getItem('plant-store-token')`), token)
  })

  it('says what is wrong with a token, keeps what was typed, and sends none that cannot be one', async () => {
    const { page, requests } = await visit(service.url)
    const alert = page.getByRole('alert')
    for (const token of ['with%0Aa%20line%20break', 'sp%20ace', 'ünïcode']) {
      await page.goto('about:blank')
      await page.goto(`${service.url}/#token=${token}`)
      await alert.getByText('without spaces').waitFor()
    }
    assert.ok(requests.every((request) => !request.includes('/plants')))
    await page.getByLabel('Token').fill('plst_of-nobody')
    await page.keyboard.press('Enter')
    await alert.filter({ hasNotText: 'spaces' }).getByText('token').waitFor()
    assert.equal(await page.getByLabel('Token').inputValue(), 'plst_of-nobody')
    const { token } = await service.issue({ scopes: ['plants:write'] })
    await page.goto(`${service.url}/#token=${token}`)
    await page.getByText('The token lacks the scope plants:read.').waitFor()
  })
})

describe('the table', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })

  it('invites to add a plant while there is none, and stores it by the keyboard alone', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByText('No plants yet').waitFor()
    await page.getByText('All plants: 0').waitFor()
    await page.getByText('Press “Add plant” to enter the first one, or “Import”').waitFor()
    await page.getByText('npx plant-store serve --demo').waitFor()
    await checkAccessibility(page)
    assert.deepEqual(await page.getByRole('columnheader').allTextContents(), ['Id', 'Name', 'Tag'])
    const add = page.getByRole('button', { name: 'Add plant' })
    await tabTo(page, add)
    await page.keyboard.press('Enter')
    await dialog(page, 'Add plant').waitFor()
    await checkAccessibility(page)
    await page.keyboard.type('1')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Ficus')
    await page.keyboard.press('Enter')
    await page.getByRole('cell', { name: 'Ficus' }).waitFor()
    assert.equal(await dialog(page, 'Add plant').count(), 0)
    assert.ok(await hasFocus(page, add))
  })

  it('stores ids at both ends of int64, exactly, shows them in order, and offers their tags', async () => {
    const { page } = await visitPlants(service.url)
    for (const id of [largest, smallest, '9007199254740993']) {
      await save(await openForm(page, 'Add plant'), { id, name: `plant ${id}`, tag: 'edge' })
      await page.getByRole('cell', { name: id, exact: true }).waitFor()
    }
    const ids = (await readRows(page)).map(([id]) => id)
    assert.deepEqual(ids, [smallest, '1', '9007199254740993', largest])
    await save(await openForm(page, 'Edit plant', BigInt(largest)), { name: 'the last' })
    await page.getByRole('cell', { name: 'the last' }).waitFor()
    assert.equal(await service.read(largest), `{"id":${largest},"name":"the last","tag":"edge"}`)
    await openForm(page, 'Add plant')
    const offered = await page.evaluate(`[...document.querySelectorAll('input[list]')].map(
      ({ id, list }) => [
        document.querySelector('label[for=' + id + ']').textContent,
        ...[...list.options].map(({ value }) => value),
      ])`)
    assert.deepEqual(offered, [
      ['Filter by tag', 'edge'],
      ['Tag', 'edge'],
    ])
  })

  it('takes an empty field for no tag, and keeps what nobody touched: empty tags, line breaks', async () => {
    await service.create('{"id":21,"name":"x","tag":""}')
    await service.create('{"id":30,"name":"a\\r\\nb","tag":"old"}')
    const { page } = await visitPlants(service.url)
    await save(await openForm(page, 'Add plant'), { id: '20', name: 'x', tag: '' })
    await page.getByText('Plant 20 saved.').waitFor()
    assert.equal(await service.read(20), '{"id":20,"name":"x"}')
    const rows = new Map((await readRows(page)).map(([id, , tag]) => [id, tag]))
    assert.notEqual(rows.get('20'), rows.get('21'))
    for (const [id, change, stored] of [
      [21, { name: 'y' }, '{"id":21,"name":"y","tag":""}'],
      [21, { tag: 'z' }, '{"id":21,"name":"y","tag":"z"}'],
      [21, { tag: '' }, '{"id":21,"name":"y"}'],
      [20, { name: 'y' }, '{"id":20,"name":"y"}'],
      [30, { tag: 'new' }, '{"id":30,"name":"a\\r\\nb","tag":"new"}'],
    ] as const) {
      const edit = await openForm(page, 'Edit plant', id)
      await save(edit, change)
      await edit.waitFor({ state: 'detached' })
      assert.equal(await service.read(id), stored)
    }
  })

  it('says what is wrong with a plant, sends none that cannot be one, and keeps what was typed', async () => {
    const { page, requests } = await visitPlants(service.url)
    const posts = () => requests.filter((request) => request.startsWith('POST')).length
    const form = dialog(page, 'Add plant')
    const open = async () => {
      await page.getByRole('button', { name: 'Add plant' }).click()
      const isProposed = async () => (await form.getByLabel('Id').inputValue()) !== ''
      await waitUntil(isProposed, 'an id is proposed, which is then replaced')
    }
    for (const id of ['', '1e3', '9223372036854775808']) {
      await open()
      await save(form, { id, name: 'x' })
      await form.getByRole('alert').getByText('must be an integer').waitFor()
      await form.getByRole('button', { name: 'Cancel' }).click()
      const alert = page.getByRole('alert').getByText('must be an integer')
      await page.getByLabel('Go to id').fill(id)
      assert.equal(await alert.count(), 0)
      await page.keyboard.press('Enter')
      await alert.waitFor()
      await page.getByLabel('Go to id').fill('1')
    }
    await open()
    const name = 'n'.repeat(8_192)
    await save(form, { id: '40', name })
    await form.getByRole('alert').getByText('at most 8 KiB').waitFor()
    assert.equal(await form.getByLabel('Name').inputValue(), name)
    assert.equal(posts(), 0)
    await save(form, { id: '1', name: 'the same id', tag: 'again' })
    await form.getByRole('alert').getByText('A plant with the id 1 exists').waitFor()
    await checkAccessibility(page)
    assert.equal(await form.getByLabel('Name').inputValue(), 'the same id')
    assert.equal(await form.getByLabel('Tag').inputValue(), 'again')
    await form.getByRole('button', { name: 'Cancel' }).click()
    assert.equal(await service.read(1), '{"id":1,"name":"Ficus"}')
  })

  it('filters by a tag, letter by letter', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByText('The whole tag, exactly').waitFor()
    await page.getByLabel('Filter by tag').fill('edge')
    await waitUntil(async () => (await readRows(page)).length === 3, 'only these are listed')
    await page.getByLabel('Filter by tag').fill('EDGE')
    await page.getByText('No plant has this tag').waitFor()
    // A question that is not answered is not waited for.
    await page.route(/tag=slow/, () => {})
    for (const tag of ['slow', '']) {
      await page.getByLabel('Filter by tag').fill(tag)
      await page.keyboard.press('Enter')
    }
    await page.getByRole('cell', { name: 'Ficus' }).waitFor()
  })

  it('shows hostile texts as text', async () => {
    const texts = [
      '<img src=x onerror="document.title=\'hacked\'">',
      '<script>document.title="hacked"</script>',
      '{{constructor.constructor("document.title=1")()}}',
      '</td></tr></table><h1>out</h1>',
      'javascript:alert(1)',
      '\u202egnp.exe',
    ]
    for (const [index, text] of texts.entries()) {
      await service.create(JSON.stringify({ id: 100 + index, name: text, tag: `${text}!` }))
    }
    const { page } = await visitPlants(service.url)
    await page.getByRole('cell', { name: '100', exact: true }).waitFor()
    const rows = new Map((await readRows(page)).map(([id, ...rest]) => [id, rest]))
    for (const [index, text] of texts.entries()) {
      assert.deepEqual(rows.get(String(100 + index)), [text, `${text}!`])
      await page.getByRole('button', { name: `Delete plant ${100 + index}` }).click()
      for (const shown of [text, `${text}!`]) {
        await dialog(page, 'Delete plant').getByText(shown, { exact: true }).waitFor()
      }
      await page.keyboard.press('Escape')
    }
    assert.equal(await page.title(), 'Plant Store')
    assert.equal(await page.locator('img, h1:text("out")').count(), 0)
  })

  it('can be read, and cuts nothing: on small screens, with large text, in the dark, in forced colours', async () => {
    const { page } = await visitPlants(service.url, { hasTouch: true })
    await page.getByRole('cell', { name: smallest, exact: true }).waitFor()
    // The longest text beside the name.
    await page.route('**/healthz', (route) => route.abort())
    await page.getByText('Connection lost. Reconnecting …').waitFor()
    for (const [width, textSize, media] of [
      [320, '100%', { colorScheme: 'dark' }],
      [1280, '200%', { forcedColors: 'active', colorScheme: 'light' }],
      [320, '200%', { forcedColors: 'none' }],
    ] as const) {
      await page.setViewportSize({ width, height: 844 })
      await page.emulateMedia(media)
      await page.evaluate(`document.documentElement.style.fontSize = '${textSize}'`)
      const headers = await page.getByRole('columnheader').allTextContents()
      assert.deepEqual(headers, ['Id', 'Name', 'Tag'])
      await checkAccessibility(page)
      assert.deepEqual(await findCut(page), [])
      for (const name of ['Add plant', `Delete plant ${smallest}`, 'Import']) {
        await page.getByRole('button', { name }).click()
        await page.getByRole('dialog').waitFor()
        assert.deepEqual(await findCut(page), [])
        if (name === 'Import') await checkAccessibility(page)
        await page.keyboard.press('Escape')
      }
    }
  })
})

/** What is wider than the screen or its own box. */
function findCut(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const isCut = (one) => {
      const { left, right } = one.getBoundingClientRect()
      return left < 0 || right > innerWidth || one.scrollWidth > Math.ceil(one.clientWidth) + 1
    }
    // A choice hides what does not fit, unless it takes several lines.
    const isNarrow = (choice) => {
      if (getComputedStyle(choice).appearance === 'base-select') return false
      const { offsetWidth } = choice
      choice.style.width = 'max-content'
      const needed = choice.offsetWidth
      choice.style.width = ''
      return needed > offsetWidth
    }
    const texts = [...document.querySelectorAll('h1, h2, button, label, p, select, .brand, td, dialog')]
      .filter((one) => one.checkVisibility() && one.closest('thead') === null)
    const cut = [...texts.filter(isCut), ...[...document.querySelectorAll('select')].filter(isNarrow)]
    if (document.documentElement.scrollWidth > innerWidth) cut.push(document.body)
    return cut.map((one) => one.tagName + ' ' + (one.ariaLabel ?? one.textContent).slice(0, 60))
  })()`)
}
