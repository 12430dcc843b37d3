import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { browserMissing } from '../support/browser.ts'
import { operatorToken, startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { checkAccessibility, visit } from './visit.ts'

// Imported by its URL, because the types of a browser are not those of this program.
const { toCurl } = await import(
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

const service = await startService('sqlite::memory:')

describe('the reference', { skip: browserMissing }, () => {
  it('shows every operation, parameter, status, header and error number, on any screen', async () => {
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
    const headers = await page.locator('dl:has([id="header-ETag"]) dt').allTextContents()
    const headerNames = Object.keys(document.components.headers).filter(
      (name) => !/-(optional|required)$/.test(name),
    )
    assert.deepEqual(headers.toSorted(), headerNames.toSorted())
    assert.ok(all.includes('-9223372036854775808 to 9223372036854775807'))
    const foreign = requests.filter((request) => !request.includes(` ${service.url}/`))
    assert.deepEqual(foreign, [])
    await checkAccessibility(page, ['color-contrast'])

    // One operation has every colour; to judge those of the whole document takes many seconds.
    const others = `document.querySelectorAll('.operation:not(#createPlant)')`
    await page.evaluate(`for (const other of ${others}) other.remove()`)
    await page.setViewportSize({ width: 390, height: 844 })
    for (const media of [
      {},
      { colorScheme: 'dark' },
      { forcedColors: 'active', colorScheme: 'light' },
    ] as const) {
      await page.emulateMedia(media)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
      await checkAccessibility(page)
    }
  })

  it('asks for a token, stores a plant, reads it with every digit, and shows refusals as they came', async () => {
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

  it('has an example with the values that were typed, which works', async () => {
    const { page } = await visit(`${service.url}/docs`)
    const create = page.locator('#createPlant')
    const name = `it's "quoted" $HOME \\\\ and <b>ünïcode</b>`
    await create.getByLabel('Body').fill(JSON.stringify({ id: 7, name }))
    const example = (await create.locator('pre[aria-label="Example"]').textContent()) ?? ''
    assert.ok(!example.includes(operatorToken))
    const env = { ...process.env, TOKEN: operatorToken }
    const sent = await promisify(execFile)('sh', ['-c', `${example} --silent`], { env })
    assert.deepEqual(JSON.parse(sent.stdout), { name })
    assert.equal(await service.read(7), JSON.stringify({ id: 7, name }))

    const list = page.locator('#listPlants')
    await list.getByText('Optional parameters').click()
    await list.getByLabel('tag (query)').fill('a b')
    const listed = await list.locator('pre[aria-label="Example"]').textContent()
    assert.ok(listed?.includes(`/plants?tag=a%20b'`))

    // It can be copied, except on a page that came over plain HTTP from another machine.
    const buttons = page.getByRole('button', { name: 'Copy' })
    assert.notEqual(await buttons.count(), 0)
    await page.addInitScript('delete Navigator.prototype.clipboard')
    await page.reload()
    await page.getByRole('button', { name: 'Try it' }).first().waitFor()
    assert.equal(await buttons.count(), 0)
  })

  it('takes the token of a link that is pasted into its tab, and forgets one that is deleted', async () => {
    const { page } = await visit(`${service.url}/docs`)
    const token = page.getByLabel('Token')
    await token.fill('typed before')
    await page.evaluate(`location.hash = 'token=${operatorToken}'`)
    await waitUntil(async () => (await token.inputValue()) === operatorToken, 'the field has it')
    assert.equal(page.url(), `${service.url}/docs`)
    await token.fill('')
    await page.getByRole('link', { name: 'Plants', exact: true }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await page.getByText('Enter a token.').count(), 0)
  })

  it('has no example that sends a file', () => {
    const create = { method: 'POST', url: 'http://h/plants', needsToken: true, headers: [] }
    assert.ok(toCurl({ ...create, body: '@x' }).endsWith("--data-raw '@x'"))
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
})

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
