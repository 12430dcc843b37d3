import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { startBrowser } from '../support/browser.ts'
import { releaseAfterTest } from '../support/release.ts'
import { operatorToken, type TestService } from '../support/service.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Opens a page of the service in a tab of its own. It is closed with the test, which fails if the
 * page had exceptions, violations of the policy, or whatever else a console calls an error.
 */
export async function visit(url: string, options: BrowserContextOptions = {}) {
  let close = async () => {}
  // Registered before the first wait: Playwright's promises lead out of the context of the test.
  releaseAfterTest(() => close())
  const context = await findContext(options)
  const page = await context.newPage()
  /** Every request that the page sent. */
  const requests: string[] = []
  const errors: string[] = []
  close = async () => {
    await page.close()
    assert.deepEqual(errors, [], 'the page had errors')
  }
  page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`))
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    // Chromium reports every answer from 400 on, which a page cannot prevent.
    const isRefusal = message.text().startsWith('Failed to load resource')
    if (['error', 'warning'].includes(message.type()) && !isRefusal) errors.push(message.text())
  })
  await page.goto(url)
  return { page, requests }
}

/** Tabs share a profile, which costs as much as the page: the page keeps nothing beyond its tab. */
const contexts = new Map<string, Promise<BrowserContext>>()

function findContext(options: BrowserContextOptions): Promise<BrowserContext> {
  const key = JSON.stringify(options)
  const context = contexts.get(key) ?? openContext(options)
  contexts.set(key, context)
  return context
}

async function openContext(options: BrowserContextOptions): Promise<BrowserContext> {
  const browser = await startBrowser()
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  // Longer than anything takes on a busy machine.
  context.setDefaultTimeout(90_000)
  return context
}

/** Opens the plants of a service, signed in by the link. */
export async function visitPlants(
  url: string,
  { token = operatorToken, ...options }: BrowserContextOptions & { token?: string } = {},
) {
  const visited = await visit(`${url}/#token=${token}`, options)
  await visited.page.getByRole('table').waitFor()
  return visited
}

/** The same, and waits until changes appear by themselves. */
export async function visitLive(...parameters: Parameters<typeof visitPlants>) {
  const visited = await visitPlants(...parameters)
  await visited.page.getByText('Live', { exact: true }).waitFor()
  return visited
}

/** Stores lines of NDJSON. */
export async function importLines(service: TestService, lines: readonly string[]): Promise<void> {
  const headers = { 'Content-Type': 'application/x-ndjson' }
  const body = lines.join('\n')
  const answer = await service.call({ method: 'POST', path: '/plants.ndjson', headers, body })
  assert.equal(JSON.parse(answer.body).stored, lines.length)
}

/** The cells of every row that is in the document. */
export function readRows(page: Page): Promise<string[][]> {
  return page.evaluate<string[][]>(`
    [...document.querySelectorAll('tbody tr')].map((row) =>
      [...row.cells].slice(0, 3).map((cell) => cell.textContent))`)
}

export function dialog(page: Page, name: string): Locator {
  return page.getByRole('dialog', { name })
}

/** Presses Tab until an element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let presses = 0; presses < 100; presses++) {
    if (await hasFocus(page, target)) return
    await page.keyboard.press('Tab')
  }
  assert.fail('the keyboard does not reach it')
}

export async function hasFocus(page: Page, target: Locator): Promise<boolean> {
  return (await target.and(page.locator(':focus')).count()) === 1
}

/** Opens the dialog of this name, for a plant if it is about one that is there. */
export async function openForm(page: Page, name: string, id?: bigint | number): Promise<Locator> {
  const button = id === undefined ? name : `${name} ${id}`
  await page.getByRole('button', { name: button, exact: true }).click()
  const form = dialog(page, name)
  await form.waitFor()
  return form
}

/** Fills and saves the dialog that is open. */
export async function save(
  form: Locator,
  { id, name, tag }: { id?: string; name?: string; tag?: string },
): Promise<void> {
  if (id !== undefined) await form.getByLabel('Id').fill(id)
  if (name !== undefined) await form.getByLabel('Name').fill(name)
  if (tag !== undefined) await form.getByLabel('Tag').fill(tag)
  await form.getByRole('button', { name: 'Save' }).click()
}

/** Holds requests back, from their arrival at the page's border until they are released. */
export async function holdRequests(page: Page, url: string | RegExp) {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const methods: string[] = []
  await page.route(url, async (route) => {
    methods.push(route.request().method())
    asked.resolve()
    await held.promise
    // The page may have given the request up.
    await route.continue().catch(() => {})
  })
  return { asked: asked.promise, release: held.resolve, methods }
}

/** Lets the client draw the same share of each pause before a retry: a small one hardly waits. */
export async function drawPauses(page: Page, share: number): Promise<void> {
  await page.evaluate(`Math.random = () => ${share}`)
}

/** Fails for every rule of accessibility that the page breaks as it is now. */
export async function checkAccessibility(page: Page, disabled: readonly string[] = []) {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axe)
  const rules = Object.fromEntries(disabled.map((rule) => [rule, { enabled: false }]))
  const options = JSON.stringify({ resultTypes: ['violations'], rules })
  const violations = await page.evaluate<string[]>(
    `axe.run(${options}).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ')))`,
  )
  assert.deepEqual(violations, [])
}
