import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { issueToken } from '../../src/tokens/issue.ts'
import { browserMissing } from '../support/browser.ts'
import { newKey, startIssuer } from '../support/issuer.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import {
  checkAccessibility,
  dialog,
  hasFocus,
  readRows,
  save,
  tabTo,
  type Visit,
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

  async function issue(scope: 'plants:read' | 'plants:write'): Promise<string> {
    const grant = { name: 'of a test', scopes: [scope], lifetimeMs: undefined }
    return (await issueToken(service.store, grant)).token
  }

  it('takes the token of a link out of the address bar, and sends it in no URL', async () => {
    const { page, requests } = await visitPlants(service.url)
    assert.equal(page.url(), `${service.url}/`)
    assert.deepEqual(
      requests.filter((request) => request.includes(operatorToken)),
      [],
    )
    assert.deepEqual(
      requests.filter((request) => !request.includes(` ${service.url}/`)),
      [],
    )
  })

  it('keeps the token for the tab: after a reload, not in another tab, not after "Sign out"', async () => {
    const { page } = await visit(service.url)
    await checkAccessibility(page)
    await page.getByLabel('Token').fill(operatorToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()
    await page.reload()
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()
    const other = await page.context().newPage()
    await other.goto(service.url)
    await other.getByLabel('Token').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await page.evaluate('sessionStorage.length + localStorage.length'), 0)
  })

  it('is over in a page that "Back" brings back after "Sign out"', async () => {
    const { page } = await visitPlants(service.url)
    const goBack = `dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`
    await page.evaluate(goBack)
    await page.getByRole('table').waitFor()
    // As another page of this tab does.
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
    const { page } = await visit(trusting.url)
    await page.getByLabel('Token').fill(await issuer.sign(key, { scope: 'plants:read' }))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Add plant' }).isVisible(), false)
  })

  it('keeps its token when a link brings a wrong one', async () => {
    const { page } = await visitPlants(service.url)
    await page.goto(`${service.url}/#token=of-somebody-else`)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.reload()
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()
  })

  it('forgets the token of a link when another one comes before it is answered', async () => {
    const token = await issue('plants:read')
    const { page } = await visit(service.url)
    const asked = Promise.withResolvers<void>()
    const next = Promise.withResolvers<void>()
    await page.route('**/plants?*', async (route) => {
      if (route.request().headers().authorization?.endsWith(operatorToken)) {
        asked.resolve()
        await next.promise
      }
      await route.continue().catch(() => {})
    })
    await page.goto(`${service.url}/#token=${operatorToken}`)
    await asked.promise
    await page.goto(`${service.url}/#token=${token}`)
    await page.getByText('Live', { exact: true }).waitFor()
    const sent: (string | undefined)[] = []
    page.on('request', (request) => sent.push(request.headers().authorization))
    next.resolve()
    await page.getByLabel('Search by name').fill('Mon')
    await page.getByText('whose name contains “Mon”: 1').waitFor()
    assert.ok(sent.every((authorization) => !authorization?.endsWith(operatorToken)))
    assert.equal(await page.evaluate(`sessionStorage.getItem('plant-store-token')`), token)
  })

  it('shows the refusal of the service, and keeps what was typed', async () => {
    const { page } = await visit(service.url)
    await page.getByLabel('Token').fill('plst_of-nobody')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('token').waitFor()
    assert.equal(await page.getByLabel('Token').inputValue(), 'plst_of-nobody')
  })

  for (const token of ['with%0Aa%20line%20break', 'sp%20ace', 'ünïcode']) {
    it(`never sends a token that cannot be one: ${token}`, async () => {
      const { page, requests } = await visit(`${service.url}/#token=${token}`)
      await page.getByRole('alert').getByText('without spaces').waitFor()
      assert.deepEqual(
        requests.filter((request) => request.includes('/plants')),
        [],
      )
    })
  }

  it('shows no way to write to a token that only reads', async () => {
    const token = await issue('plants:read')
    const { page } = await visitPlants(service.url, { token })
    await page.getByRole('cell', { name: 'Monstera' }).waitFor()
    const buttons = await page.getByRole('button').allTextContents()
    assert.deepEqual(
      buttons.filter((name) => !['Sign out', 'Export'].includes(name)),
      [],
    )
  })

  it('says which scope a token lacks to see plants', async () => {
    const token = await issue('plants:write')
    const { page } = await visit(`${service.url}/#token=${token}`)
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

  it('stores ids at both ends of int64, exactly, and shows them in order', async () => {
    const { page } = await visitPlants(service.url)
    for (const id of [largest, smallest, '9007199254740993']) {
      await page.getByRole('button', { name: 'Add plant' }).click()
      await save(dialog(page, 'Add plant'), { id, name: `plant ${id}`, tag: 'edge' })
      await page.getByRole('cell', { name: id, exact: true }).waitFor()
    }
    const ids = (await readRows(page)).map(([id]) => id)
    assert.deepEqual(ids, [smallest, '1', '9007199254740993', largest])
    await page.getByRole('button', { name: `Edit plant ${largest}` }).click()
    await save(dialog(page, 'Edit plant'), { name: 'the last' })
    await page.getByRole('cell', { name: 'the last' }).waitFor()
    const { body } = await service.call({ path: `/plants/${largest}` })
    assert.equal(body, `{"id":${largest},"name":"the last","tag":"edge"}`)
  })

  it('takes an empty field for no tag, and keeps an empty tag until it is changed', async () => {
    await service.create('{"id":21,"name":"x","tag":""}')
    const { page } = await visitPlants(service.url)
    const edit = dialog(page, 'Edit plant')
    const read = async (id: number) => (await service.call({ path: `/plants/${id}` })).body
    await page.getByRole('button', { name: 'Add plant' }).click()
    await save(dialog(page, 'Add plant'), { id: '20', name: 'x', tag: '' })
    await page.getByText('Plant 20 saved.').waitFor()
    assert.equal(await read(20), '{"id":20,"name":"x"}')
    const rows = new Map((await readRows(page)).map(([id, , tag]) => [id, tag]))
    assert.notEqual(rows.get('20'), rows.get('21'))
    const steps = [
      [21, { name: 'y' }, '{"id":21,"name":"y","tag":""}'],
      [21, { tag: 'z' }, '{"id":21,"name":"y","tag":"z"}'],
      [21, { tag: '' }, '{"id":21,"name":"y"}'],
      [20, { name: 'y' }, '{"id":20,"name":"y"}'],
    ] as const
    for (const [id, change, stored] of steps) {
      await page.getByRole('button', { name: `Edit plant ${id}`, exact: true }).click()
      await edit.waitFor()
      assert.equal(await edit.getByRole('checkbox').count(), 0)
      await save(edit, change)
      await edit.waitFor({ state: 'detached' })
      assert.equal(await read(id), stored)
    }
  })

  it('offers the tags that it has shown, in the filter and in the dialogs', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByRole('cell', { name: 'Ficus' }).waitFor()
    await page.getByRole('button', { name: 'Add plant' }).click()
    await dialog(page, 'Add plant').waitFor()
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

  it('keeps the line breaks of a name that nobody touched', async () => {
    await service.create('{"id":30,"name":"a\\r\\nb","tag":"old"}')
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Edit plant 30' }).click()
    await save(dialog(page, 'Edit plant'), { tag: 'new' })
    await dialog(page, 'Edit plant').waitFor({ state: 'detached' })
    const { body } = await service.call({ path: '/plants/30' })
    assert.equal(body, '{"id":30,"name":"a\\r\\nb","tag":"new"}')
  })

  it('shows the refusal of the service in an alert, and what was typed stays', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Add plant' }).click()
    const form = dialog(page, 'Add plant')
    await save(form, { id: '1', name: 'the same id', tag: 'again' })
    await form.getByRole('alert').getByText('A plant with the id 1 exists').waitFor()
    await checkAccessibility(page)
    assert.equal(await form.getByLabel('Name').inputValue(), 'the same id')
    assert.equal(await form.getByLabel('Tag').inputValue(), 'again')
    await form.getByRole('button', { name: 'Cancel' }).click()
    assert.equal((await service.call({ path: '/plants/1' })).body, '{"id":1,"name":"Ficus"}')
  })

  describe('never sends what is no id:', () => {
    let visited: Visit
    before(async () => {
      visited = await visitPlants(service.url)
    })

    for (const id of [
      '',
      ' 1',
      '+1',
      '1e3',
      '1.0',
      '0x1',
      '9'.repeat(200),
      '9223372036854775808',
    ]) {
      it(`"${id.slice(0, 22)}"`, async () => {
        const { page, requests } = visited
        await page.getByRole('button', { name: 'Add plant' }).click()
        const form = dialog(page, 'Add plant')
        const isProposed = async () => (await form.getByLabel('Id').inputValue()) !== ''
        await waitUntil(isProposed, 'an id is proposed, which is then replaced')
        await save(form, { id, name: 'x' })
        await form.getByRole('alert').getByText('must be an integer').waitFor()
        await form.getByRole('button', { name: 'Cancel' }).click()
        const alert = page.getByRole('alert').getByText('must be an integer')
        await page.getByLabel('Go to id').fill(id)
        assert.equal(await alert.count(), 0)
        await page.keyboard.press('Enter')
        await alert.waitFor()
        assert.deepEqual(
          requests.filter((request) => request.startsWith('POST')),
          [],
        )
      })
    }
  })

  it('never sends a plant that is too large, and keeps what was typed', async () => {
    const { page, requests } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Add plant' }).click()
    const form = dialog(page, 'Add plant')
    const name = 'n'.repeat(8_192)
    await save(form, { id: '40', name })
    await form.getByRole('alert').getByText('at most 8 KiB').waitFor()
    assert.equal(await form.getByLabel('Name').inputValue(), name)
    assert.ok(!requests.some((request) => request.startsWith('POST')))
  })

  it('deletes a plant after a question, and not after "Cancel"', async () => {
    await service.create('{"id":50,"name":"short-lived"}')
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Delete plant 50' }).click()
    await checkAccessibility(page)
    await dialog(page, 'Delete plant').getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Delete plant 50' }).click()
    await dialog(page, 'Delete plant').getByRole('button', { name: 'Delete' }).click()
    await waitUntil(
      async () => (await page.getByText('short-lived').count()) === 0,
      'the row has disappeared',
    )
    assert.equal((await service.call({ path: '/plants/50' })).status, 404)
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

  for (const [width, textSize] of [
    [390, '100%'],
    [320, '100%'],
    [1280, '200%'],
    [320, '200%'],
  ] as const) {
    it(`fits a screen of ${width} pixels with text of ${textSize}, and cuts nothing`, async () => {
      const viewport = { width, height: 844 }
      const { page } = await visitPlants(service.url, { viewport, hasTouch: true })
      await page.evaluate(`document.documentElement.style.fontSize = '${textSize}'`)
      await page.getByRole('cell', { name: smallest, exact: true }).waitFor()
      const headers = await page.getByRole('columnheader').allTextContents()
      assert.deepEqual(headers, ['Id', 'Name', 'Tag'])
      await checkAccessibility(page)
      assert.deepEqual(await findCut(page), [])
      for (const name of ['Add plant', 'Import', `Delete plant ${smallest}`]) {
        await page.getByRole('button', { name }).click()
        await page.getByRole('dialog').waitFor()
        assert.deepEqual(await findCut(page), [])
        await page.keyboard.press('Escape')
      }
      await page.route('**/healthz', () => {})
      await page.getByText('Connection lost. Reconnecting …').waitFor()
      assert.deepEqual(await findCut(page), [])
    })
  }

  for (const options of [{ colorScheme: 'dark' }, { forcedColors: 'active' }] as const) {
    it(`can be read with ${JSON.stringify(options)}, and so can the reference`, async () => {
      const { page } = await visitPlants(service.url, options)
      await page.getByRole('cell', { name: 'Ficus' }).waitFor()
      await checkAccessibility(page)
      await page.getByRole('button', { name: 'Import' }).click()
      await checkAccessibility(page)
      const reference = await visit(`${service.url}/docs`, options)
      await reference.page.getByRole('heading', { name: 'Create a plant', exact: true }).waitFor()
      await checkAccessibility(reference.page)
    })
  }
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
