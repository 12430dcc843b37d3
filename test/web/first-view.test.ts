import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { browserMissing, startBrowser } from '../support/browser.ts'
import { operatorToken, startService, type TestService } from '../support/service.ts'
import { importLines } from './visit.ts'

describe('the first view', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
    const line = (id: number) => `{"id":${id},"name":"Monstera deliciosa ${id}","tag":"indoor"}`
    await importLines(
      service,
      Array.from({ length: 10_000 }, (_, index) => line(index + 1)),
    )
  })

  for (const [name, path, maxBytes, last] of [
    ['10,000 plants', `/#token=${operatorToken}`, 60_000, 'Live'],
    ['the reference', '/docs', 80_000, 'Create a plant'],
  ] as const) {
    it(`of ${name} takes at most 12 requests and ${maxBytes} bytes, and nothing moves`, async (context) => {
      const browser = await startBrowser()
      const page = await browser.newPage()
      const session = await page.context().newCDPSession(page)
      const requests: string[] = []
      let bytes = 0
      session.on('Network.requestWillBeSent', ({ request }) => requests.push(request.url))
      session.on('Network.dataReceived', ({ encodedDataLength }) => {
        bytes += encodedDataLength
      })
      session.on('Network.responseReceived', ({ response }) => {
        bytes += response.encodedDataLength
      })
      await session.send('Network.enable')
      await page.addInitScript(`
        window.shift = 0
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shift += entry.value
        }).observe({ type: 'layout-shift', buffered: true })`)
      await page.goto(service.url + path)
      await page.getByText(last, { exact: true }).first().waitFor()
      await page.waitForLoadState('load')
      const shift = Number(await page.evaluate('window.shift'))
      await page.close()
      context.diagnostic(`${requests.length} requests, ${bytes} bytes, shift ${shift}`)
      assert.ok(requests.length <= 12, `${requests.length} requests`)
      assert.deepEqual(
        requests.filter((url) => !url.startsWith(`${service.url}/`)),
        [],
      )
      assert.ok(bytes <= maxBytes, `${bytes} bytes`)
      assert.ok(shift < 0.01, `layout shift ${shift}`)
    })
  }
})
