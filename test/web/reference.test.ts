import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { checkAccessibility, visit } from './visit.ts'

// Imported by its URL, because the types of a browser are not those of this program.
const { examples } = await import(
  new URL('../../web/browser/reference/try-it.ts', import.meta.url).href
)

const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
interface Operation {
  operationId: string
  summary: string
  parameters?: { name?: string; $ref?: string }[]
  responses: Record<string, { $ref?: string; description?: string; headers?: object }>
}
type Paths = Record<string, Record<string, Operation>>
const operations = Object.entries({ ...document.paths, ...document.webhooks } as Paths).flatMap(
  ([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
)

describe('the reference', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })

  it('shows every operation, parameter, status, header and error number, without a token', async () => {
    const { page, requests } = await visit(`${service.url}/docs`)
    await page.getByRole('heading', { name: 'Create a plant', exact: true }).waitFor()
    for (const { path, method, ...operation } of operations) {
      const { operationId } = operation
      const text = (await page.locator(`[id="${operationId}"]`).textContent()) ?? ''
      assert.ok(text.includes(`${method.toUpperCase()} ${path}`), operationId)
      for (const expected of listTexts(operation)) {
        assert.ok(text.includes(expected), `${operationId}: ${expected}`)
      }
    }
    const errors = await page.locator('dl:has([id="error-400"])').textContent()
    for (const { description, headers } of Object.values<Response>(document.components.responses)) {
      for (const expected of [...toNumbers(description), ...Object.keys(headers)]) {
        assert.ok(errors?.includes(expected), expected)
      }
    }
    const all = (await page.locator('main').textContent()) ?? ''
    for (const name of Object.keys(document.components.schemas)) assert.ok(all.includes(name), name)
    assert.ok(all.includes('-9223372036854775808 to 9223372036854775807'))
    assert.deepEqual(
      requests.filter((request) => !request.includes(` ${service.url}/`)),
      [],
    )
    await checkAccessibility(page, ['color-contrast'])
    await checkOneOperation(page)
  })

  it('stores a plant, reads it back with every digit, and shows refusals as they came', async () => {
    const { page } = await visit(`${service.url}/docs`)
    await page.getByLabel('Token').fill(operatorToken)
    const create = page.locator('#createPlant')
    await create.getByLabel('Body').fill('{"id":9007199254740993,"name":"Ficus"}')
    await create.getByRole('button', { name: 'Try it' }).click()
    await create.getByText('200 OK').waitFor()
    await create.getByText('{"name":"Ficus"}', { exact: true }).waitFor()
    await create.getByText('location: /plants/9007199254740993').waitFor()
    await create.getByRole('button', { name: 'Try it' }).click()
    await create.getByText('"error":40900').waitFor()
    const get = page.locator('#getPlant')
    await get.getByLabel('id (path)').fill('9007199254740993')
    await get.getByRole('button', { name: 'Try it' }).click()
    await get.getByText('{"id":9007199254740993,"name":"Ficus"}').waitFor()
    await get.getByLabel('id (path)').fill('1e3')
    await get.getByRole('button', { name: 'Try it' }).click()
    await get.getByText('"error":40004').waitFor()
  })

  it('asks for a token before it sends what needs one', async () => {
    const { page, requests } = await visit(`${service.url}/docs`)
    const list = page.locator('#listPlants')
    await list.getByRole('button', { name: 'Try it' }).click()
    await list.getByRole('alert').getByText('Enter a token').waitFor()
    assert.ok(!requests.some((request) => request.includes('/plants')))
    await list.locator('pre').getByText('Monstera deliciosa').waitFor()
    const health = page.locator('#getHealth')
    await health.getByRole('button', { name: 'Try it' }).click()
    await health.getByText('200 OK').waitFor()
    await health.getByText('{"status":"ok"}').waitFor()
  })

  it('has examples with the values that were typed, which work', async () => {
    const { page } = await visit(`${service.url}/docs`)
    const create = page.locator('#createPlant')
    const name = `it's "quoted" $HOME \\\\ and <b>ünïcode</b>`
    await create.getByLabel('Body').fill(JSON.stringify({ id: 7, name }))
    const examples = new Map<string, string>()
    for (const kind of ['curl', 'Client']) {
      await create.getByLabel('Example').first().selectOption(kind)
      const text = (await create.locator('pre[aria-label="Example"]').textContent()) ?? ''
      assert.ok(!text.includes(operatorToken))
      examples.set(kind, text)
    }
    assert.match(examples.get('Client') ?? '', /plants\.create\(\{"id":7n,/)
    const env = { ...process.env, TOKEN: operatorToken }
    const run = promisify(execFile)
    const curl = await run('sh', ['-c', `${examples.get('curl')} --silent`], { env })
    assert.deepEqual(JSON.parse(curl.stdout), { name })
    const client = new URL('../../client/index.ts', import.meta.url).href
    const script = (examples.get('Client') ?? '').replace('plant-store/client', client)
    const args = ['--input-type=module', '--eval', script]
    await assert.rejects(run(process.execPath, args, { env }), /A plant with the id 7 exists/)
    assert.equal((await service.call({ path: '/plants/7' })).body, JSON.stringify({ id: 7, name }))
  })

  it('forgets a token that is deleted from its field', async () => {
    const { page } = await visit(`${service.url}/docs`)
    await page.getByLabel('Token').fill('typed')
    await page.getByLabel('Token').fill('')
    await page.getByRole('link', { name: 'Plants', exact: true }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await page.getByText('Enter a token.').count(), 0)
  })

  it('takes the token of a link that is pasted into its tab', async () => {
    const { page } = await visit(`${service.url}/docs`)
    await page.getByLabel('Token').fill('typed before')
    await page.evaluate(`location.hash = 'token=${operatorToken}'`)
    await waitUntil(
      async () => (await page.getByLabel('Token').inputValue()) === operatorToken,
      'the field has the token',
    )
    assert.equal(page.url(), `${service.url}/docs`)
  })

  it('has an example of the client for any path of the service', () => {
    const request = { method: 'GET', needsToken: true, path: '', headers: [], body: undefined }
    const of = (operationId: string, url: string, values: object): string =>
      examples.Client({ ...request, operationId, url, values })
    const address = "url: 'https://h/plants', token"
    assert.ok(of('listPlants', 'https://h/plants/plants', {}).includes(address))
    assert.ok(of('getPlant', 'https://h/plants/plants/7', { id: '7' }).includes(address))
    assert.ok(of('listEvents', 'https://h/plants/events?after=x', {}).includes(address))
    const typed = { after: 'x', 'Last-Event-ID': 'y' }
    assert.ok(of('listEvents', 'https://h/events?after=x', typed).includes("after: 'y'"))
  })

  it('has an example for curl that sends a body, and never a file', () => {
    const request = { method: 'POST', needsToken: false, path: '', headers: [], values: {} }
    const url = 'http://h/plants'
    const text: string = examples.curl({ ...request, operationId: 'createPlant', url, body: '@x' })
    assert.ok(text.endsWith("--data-raw '@x'"))
  })

  it('offers to copy an example only where the browser can', async () => {
    const { page } = await visit(`${service.url}/docs`)
    const buttons = page.getByRole('button', { name: 'Copy' })
    await buttons.first().waitFor()
    // As on a page that came over plain HTTP from another machine.
    await page.addInitScript('delete Navigator.prototype.clipboard')
    await page.reload()
    await page.getByRole('button', { name: 'Try it' }).first().waitFor()
    assert.equal(await buttons.count(), 0)
  })

  it('has no example that leaves out a condition', async () => {
    const { page } = await visit(`${service.url}/docs`)
    const remove = page.locator('#deletePlant')
    await remove.getByLabel('Example').first().selectOption('Client')
    await remove.getByText('Optional parameters').click()
    await remove.getByLabel('If-Match').fill('"1"')
    const example = remove.locator('pre[aria-label="Example"]')
    assert.match((await example.textContent()) ?? '', /ifMatch: '"1"'/)
    await remove.getByLabel('If-None-Match').fill('"1"')
    assert.match((await example.textContent()) ?? '', /has no ifNoneMatch here/)
  })

  it('follows deep links, and lists the title of every operation', async () => {
    const broken = await visit(`${service.url}/docs#100%`)
    await broken.page.getByRole('button', { name: 'Try it' }).first().waitFor()
    const { page } = await visit(`${service.url}/docs#deletePlant-404`)
    await page.locator('[id="deletePlant-404"]').waitFor()
    assert.ok(await page.locator('[id="deletePlant-404"]').isVisible())
    assert.ok(Number(await page.evaluate('scrollY')) > 0)
    await page.locator('#deletePlant-404').getByRole('link', { name: '404' }).click()
    await page.getByText('40401: No plant has this id.').waitFor()
    const contents = page.getByRole('navigation')
    for (const { summary, method } of operations) {
      const name = `${summary} ${method.toUpperCase()}`
      await contents.getByRole('link', { name, exact: true }).waitFor()
    }
    await contents.getByRole('link', { name: 'List plants' }).click()
    assert.ok(page.url().endsWith('#listPlants'))
  })

  it('fits each operation on a screen of 1280 by 720 pixels, below the bar', async () => {
    const viewport = { width: 1280, height: 720 }
    const { page } = await visit(`${service.url}/docs`, { viewport })
    await page.getByRole('heading', { name: 'Create a plant', exact: true }).waitFor()
    const bar = Number(
      await page.evaluate(
        'parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop)',
      ),
    )
    for (const { operationId } of operations) {
      const box = await page.locator(`[id="${operationId}"]`).boundingBox()
      const heightPx = bar + (box?.height ?? viewport.height)
      assert.ok(heightPx <= viewport.height, `${operationId} needs ${heightPx} pixels`)
    }
  })

  it('fits a screen of 390 pixels, in the dark, too', async () => {
    const options = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' } as const
    const { page } = await visit(`${service.url}/docs`, options)
    await page.getByRole('heading', { name: 'Create a plant', exact: true }).waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await checkOneOperation(page)
  })
})

/** One operation has every colour; to judge those of the whole document takes many seconds. */
async function checkOneOperation(page: Page): Promise<void> {
  const others = '.operation:not(#createPlant)'
  await page.evaluate(`for (const other of document.querySelectorAll('${others}')) other.remove()`)
  await checkAccessibility(page)
}

type Response = { description: string; headers: object }

/** Everything that the section of an operation has to mention. */
function listTexts({ parameters = [], responses }: Omit<Operation, 'path'>): string[] {
  const { components } = document
  return [
    ...parameters.map(({ name, $ref }) => name ?? components.parameters[toName($ref)].name),
    ...Object.entries(responses).flatMap(([status, { $ref, description, headers = {} }]) => {
      if ($ref === undefined) return [status, ...Object.keys(headers)]
      return [status, ...toNumbers(description ?? components.responses[toName($ref)].description)]
    }),
  ]
}

function toName($ref = ''): string {
  return $ref.replace(/^.*\//, '')
}

function toNumbers(description: string): readonly string[] {
  return description.match(/\b\d{5}\b/g) ?? []
}
