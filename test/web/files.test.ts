import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, beforeEach, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { foreign, readable, plants as sheet, toPath } from '../spreadsheet/files.ts'
import { browserMissing } from '../support/browser.ts'
import { startService, type TestService } from '../support/service.ts'
import { checkAccessibility, dialog, visitPlants } from './visit.ts'

describe('files of plants', { skip: browserMissing }, () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })
  beforeEach(async () => {
    const { body } = await service.call({ path: '/plants?limit=1000' })
    for (const [, id] of body.matchAll(/"id":(-?\d+)/g)) {
      await service.call({ method: 'DELETE', path: `/plants/${id}` })
    }
  })

  async function choose(page: Page, name: string, content: string | Buffer): Promise<void> {
    const file = { name, mimeType: 'text/plain', buffer: Buffer.from(content) }
    await dialog(page, 'Import').getByLabel('File').setInputFiles(file)
  }

  async function start(page: Page): Promise<void> {
    await dialog(page, 'Import').getByRole('button', { name: 'Start import' }).click()
  }

  const plants = '{"id":9007199254740993,"name":"a","tag":""}\n{"id":2,"name":"b"}\n'
  const files: [name: string, content: string | Buffer][] = [
    ['plants.ndjson', plants],
    ['plants.csv', 'id,name,tag\n2,b,\n9007199254740993,a,""\n'],
    ['plants.ndjson.gz', gzipSync(plants)],
    ['plants', plants],
  ]
  for (const [name, content] of files) {
    it(`imports ${name} and shows its plants`, async () => {
      const { page, errors } = await visitPlants(service.url)
      await page.getByRole('button', { name: 'Import' }).click()
      if (name === 'plants.csv') await checkAccessibility(page)
      await choose(page, name, content)
      await dialog(page, 'Import').getByText('2 plants can be imported').waitFor()
      if (name === 'plants.csv') await checkAccessibility(page)
      assert.equal((await service.call({ path: '/plants' })).body, '[]')
      await start(page)
      await dialog(page, 'Import').getByText('2 stored').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      await page.getByRole('cell', { name: '9007199254740993', exact: true }).waitFor()
      const { body } = await service.call({ path: '/plants' })
      assert.equal(body, `[${plants.trim().split('\n').reverse().join(',')}]`)
      assert.deepEqual(errors, [])
    })
  }

  it('says that an import was interrupted if a proxy answers with a page of its own', async () => {
    const { page, errors } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    await choose(page, 'plants.ndjson', plants)
    await page.route('**/plants.ndjson*', (route) => route.fulfill({ body: '<h1>Sign in</h1>' }), {
      times: 1,
    })
    await start(page)
    await dialog(page, 'Import').getByRole('alert').getByText('was interrupted').waitFor()
    await start(page)
    await dialog(page, 'Import').getByText('2 stored').waitFor()
    assert.deepEqual(errors, [])
  })

  it('shows imported plants also where no stream tells of them', async () => {
    const silent = await startService('sqlite::memory:', { env: { JOURNAL_KEEP: 'off' } })
    const { page } = await visitPlants(silent.url)
    await page.getByRole('button', { name: 'Import' }).click()
    await choose(page, 'plants.ndjson', plants)
    await start(page)
    await dialog(page, 'Import').getByText('2 stored').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('cell', { name: '9007199254740993', exact: true }).waitFor()
  })

  it('reports each line that was refused, and what was stored', async () => {
    await service.create('{"id":1,"name":"kept"}')
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    await choose(
      page,
      'x.ndjson',
      '{"id":1,"name":"other"}\n{"id":3}\nno JSON\n{"id":4,"name":"d"}\n',
    )
    const report = dialog(page, 'Import')
    await report.getByText('2 plants can be imported, and 2 lines will be refused.').waitFor()
    await report.getByText('1 of these ids exist already.').waitFor()
    await report.getByText('Line 2: The name is missing.').waitFor()
    await start(page)
    await report.getByText('1 stored, 3 refused').waitFor()
    await report.getByText(/Line 2.*"name"/).waitFor()
    await report.getByText(/Line 3/).waitFor()
    await checkAccessibility(page)
    await report.getByLabel('already').selectOption({ label: 'Replace the stored plant' })
    await choose(page, 'x.ndjson', '{"id":1,"name":"other"}\n')
    await report.getByText('The stored plants are replaced.').waitFor()
    await start(page)
    await report.getByText('1 replaced').waitFor()
  })

  const wrong: [name: string, content: string | Buffer, sentence: RegExp][] = [
    ['empty.csv', '', /The file is empty/],
    ['plants.json', '[{"id":1,"name":"a"}]', /JSON array/],
    ['picture.png', Buffer.from([0x89, 0x50, 0x4e, 0x47]), /neither NDJSON nor CSV/],
    ['no-gzip.ndjson.gz', 'no gzip', /not gzip/],
    ['no-header.csv', 'a,b\nc,d\n', /first line must name the columns/],
    ['twice.csv', 'id,id,name\n1,1,a\n', /first line must name the columns, each once/],
    ['windows.csv', Buffer.from('id;name\n1;B\xfcro\n', 'latin1'), /CSV UTF-8/],
  ]
  for (const [name, content, sentence] of wrong) {
    it(`says what is wrong with ${name}`, async () => {
      const { page, errors } = await visitPlants(service.url)
      await page.getByRole('button', { name: 'Import' }).click()
      await choose(page, name, content)
      await dialog(page, 'Import').getByRole('alert').getByText(sentence).waitFor()
      assert.deepEqual(errors, [])
    })
  }

  it('imports a file that is dropped on the page', async () => {
    const { page } = await visitPlants(service.url)
    await page.evaluate(`
      const carried = new DataTransfer()
      carried.items.add(new File(['{"id":5,"name":"dropped"}'], 'dropped.ndjson'))
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true }))`)
    await start(page)
    await dialog(page, 'Import').getByText('1 stored').waitFor()
  })

  const spreadsheets: [kind: string, content: string, ids: number][] = [
    ['semicolons', '\ufeffid;name;tag\r\n1;"Ficus; ""tall""";\r\n2;"two\r\nlines";x\r\n', 2],
    ['tabs', 'sep=\t\r\nid\tname\r\n1\tFicus\r\n', 1],
  ]
  for (const [kind, content, count] of spreadsheets) {
    it(`checks CSV with ${kind}, and says which lines will be refused`, async () => {
      const { page, errors } = await visitPlants(service.url)
      await page.getByRole('button', { name: 'Import' }).click()
      await choose(
        page,
        kind === 'tabs' ? 'sheet.tsv' : 'sheet.csv',
        `${content}007${kind === 'tabs' ? '\t' : ';x;'}`,
      )
      const report = dialog(page, 'Import')
      await report.getByText(`CSV with ${kind}`).waitFor()
      const counted = count === 1 ? '1 plant' : `${count} plants`
      await report.getByText(`${counted} can be imported, and 1 line will be refused.`).waitFor()
      await report.getByText(`Line ${kind === 'tabs' ? 4 : 5}: The id must be`).waitFor()
      assert.deepEqual(errors, [])
    })
  }

  it('imports the files that spreadsheets write in English, French and German', async () => {
    const { page, errors } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    const report = dialog(page, 'Import')
    for (const [index, name] of readable.entries()) {
      await choose(page, name, readFileSync(toPath(name)))
      await report.getByText(`${name}: CSV with`).waitFor()
      await report.getByText('4 plants can be imported.').waitFor()
      await start(page)
      const outcome = index === 0 ? '4 stored.' : '0 stored, 4 already there.'
      await report.getByText(`${name}: ${outcome}`).waitFor()
    }
    const { body } = await service.call({ path: '/plants' })
    assert.equal(body, `[${sheet.join(',')}]`)
    await choose(page, foreign, readFileSync(toPath(foreign)))
    await report.getByRole('alert').getByText('CSV UTF-8').waitFor()
    assert.deepEqual(errors, [])
  })

  it('checks the beginning of a long file, and writes large numbers with separators', async () => {
    const lines = Array.from({ length: 2_500 }, (_, index) => `{"id":${index},"name":"x"}\n`)
    const other = await startService('sqlite::memory:')
    const { page } = await visitPlants(other.url)
    await page.getByRole('button', { name: 'Import' }).click()
    await choose(page, 'long.ndjson.gz', gzipSync(lines.join('')))
    const report = dialog(page, 'Import')
    await report.getByText('The first 1,000 lines were checked').waitFor()
    await report.getByText('The rest is checked while it is imported.').waitFor()
    await start(page)
    await report.getByText('2,500 stored').waitFor()
  })

  it('judges no line that it has read in part, wherever the file has blank lines', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    const lines = Array.from(
      { length: 150 },
      (_, id) => `{"id":${id},"name":"${'x'.repeat(8_000)}"}`,
    )
    await choose(page, 'long.ndjson', ['', ...lines].join('\n'))
    const report = dialog(page, 'Import')
    await report.getByText('The rest is checked while it is imported.').waitFor()
    assert.equal(await report.getByText('will be refused').count(), 0)
  })

  it('checks the lines after one with a wrong quote, as the service reads them', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    const rows = ['', '', 'id,name', '1,a', '2,5" pot', '3,"two', 'lines"x', '4,b', '5,"c']
    await choose(page, 'quotes.csv', `${rows.join('\n')}\n6,never read\n`)
    const report = dialog(page, 'Import')
    await report.getByText('2 plants can be imported, and 3 lines will be refused.').waitFor()
    const faults = await report.getByRole('listitem').allTextContents()
    assert.deepEqual(
      faults.map((fault) => fault.slice(0, 7)),
      ['Line 5:', 'Line 6:', 'Line 9:'],
    )
    await start(page)
    await report.getByText('2 stored, 3 refused.').waitFor()
    const refused = await report.getByRole('listitem').allTextContents()
    assert.deepEqual(
      refused.map((fault) => fault.slice(0, 7)),
      ['Line 5:', 'Line 6:', 'Line 9:'],
    )
  })

  it('imports a gzipped file of several members, of which browsers unzip the first', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    const members = ['{"id":1,"name":"a"}\n', '{"id":2,"name":"b"}\n'].map((text) => gzipSync(text))
    await choose(page, 'plants.ndjson.gz', Buffer.concat(members))
    await dialog(page, 'Import').getByText('The rest is checked while it is imported.').waitFor()
    await start(page)
    await dialog(page, 'Import').getByText('2 stored').waitFor()
  })

  it('says that it has checked a whole file of 1,000 lines', async () => {
    const { page } = await visitPlants(service.url)
    await page.getByRole('button', { name: 'Import' }).click()
    const lines = Array.from({ length: 1_000 }, (_, id) => `{"id":${id},"name":"x"}\n`)
    await choose(page, 'page.ndjson', lines.join(''))
    await dialog(page, 'Import').getByText('The whole file was checked').waitFor()
  })

  for (const [locale, expected] of [
    ['en-GB', '\ufeffid,name,tag\n1,a,x & y\n'],
    ['de-DE', '\ufeffid;name;tag\n1;a;x & y\n'],
  ] as const) {
    it(`exports for the spreadsheets of ${locale} unless told otherwise, and says what`, async () => {
      await service.create('{"id":1,"name":"a","tag":"x & y"}')
      await service.create('{"id":2,"name":"b"}')
      const { page } = await visitPlants(service.url, { locale })
      await page.getByText('Exports all plants', { exact: true }).waitFor()
      await page.getByLabel('Filter by tag').fill('x & y')
      await page.getByText('Plants with the tag “x & y”: 1').waitFor()
      await page.getByText('Exports plants with the tag “x & y”', { exact: true }).waitFor()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Export' }).click(),
      ])
      assert.equal(download.suggestedFilename(), 'plants-for-spreadsheet.csv')
      assert.equal(readFileSync(await download.path(), 'utf8'), expected)
      await page.getByLabel('Search by name').fill('a')
      await page.getByText('Exports plants with the tag “x & y”, not only those found').waitFor()
    })
  }

  for (const [format, expected] of [
    ['CSV', 'id,name,tag\n1,a,x\n2,b,\n'],
    ['NDJSON', '{"id":1,"name":"a","tag":"x"}\n{"id":2,"name":"b"}\n'],
  ] as const) {
    it(`exports ${format}, byte for byte what the service sends`, async () => {
      await service.create('{"id":1,"name":"a","tag":"x"}')
      await service.create('{"id":2,"name":"b"}')
      const { page } = await visitPlants(service.url)
      await page.getByLabel('Format').selectOption(`${format}, exact`)
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Export' }).click(),
      ])
      assert.equal(download.suggestedFilename(), `plants.${format.toLowerCase()}`)
      assert.equal(readFileSync(await download.path(), 'utf8'), expected)
    })
  }
})
