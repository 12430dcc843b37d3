import assert from 'node:assert/strict'
import { it } from 'node:test'
import { browserMissing, startBrowser } from '../support/browser.ts'
import { operatorToken, startService } from '../support/service.ts'
import { importLines } from './visit.ts'

for (const [path, last, maxBytes] of [
  [`/#token=${operatorToken}`, 'Live', 60_000],
  ['/docs', 'Create a plant', 80_000],
] as const) {
  it(`the first view takes at most 12 requests and ${maxBytes} bytes, and nothing moves: ${path}`, {
    skip: browserMissing,
  }, async () => {
    const service = await startService('sqlite::memory:')
    const toLine = (_: unknown, id: number) => `{"id":${id},"name":"plain ${id}","tag":"odd"}`
    await importLines(service, Array.from({ length: 200 }, toLine))
    // A page that nothing is cached of.
    const page = await (await startBrowser()).newPage()
    const session = await page.context().newCDPSession(page)
    const requests: string[] = []
    const sizes: number[] = []
    session.on('Network.requestWillBeSent', ({ request }) => requests.push(request.url))
    session.on('Network.dataReceived', ({ encodedDataLength }) => sizes.push(encodedDataLength))
    session.on('Network.responseReceived', ({ response }) => sizes.push(response.encodedDataLength))
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
    assert.ok(requests.length <= 12, `${requests.length} requests`)
    assert.ok(requests.every((request) => request.startsWith(`${service.url}/`)))
    const bytes = sizes.reduce((sum, size) => sum + size, 0)
    assert.ok(bytes <= maxBytes, `${bytes} bytes`)
    assert.ok(shift < 0.01, `layout shift ${shift}`)
  })
}
