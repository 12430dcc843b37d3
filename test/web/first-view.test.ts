import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { browserMissing, startBrowser } from '../support/browser.ts'
import { operatorToken, startService } from '../support/service.ts'

describe('the first view of 10,000 plants', { skip: browserMissing }, () => {
  it('takes at most 12 requests and 100 KB, and nothing moves', async (context) => {
    const service = await startService('sqlite::memory:')
    const line = (id: number) => `{"id":${id},"name":"Monstera deliciosa ${id}","tag":"indoor"}\n`
    await service.call({
      method: 'POST',
      path: '/plants.ndjson',
      headers: { 'Content-Type': 'application/x-ndjson' },
      body: Array.from({ length: 10_000 }, (_, index) => line(index + 1)).join(''),
    })
    const browser = await startBrowser()
    const page = await browser.newPage()
    const session = await page.context().newCDPSession(page)
    let requests = 0
    let bytes = 0
    session.on('Network.requestWillBeSent', () => requests++)
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
    await page.goto(`${service.url}/#token=${operatorToken}`)
    await page.getByRole('cell', { name: 'Monstera deliciosa 1', exact: true }).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const shift = Number(await page.evaluate('window.shift'))
    await page.close()
    context.diagnostic(`${requests} requests, ${bytes} bytes, shift ${shift}`)
    assert.ok(requests <= 12, `${requests} requests`)
    assert.ok(bytes <= 100_000, `${bytes} bytes`)
    assert.ok(shift < 0.01, `layout shift ${shift}`)
  })
})
