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

  /** Opens the page, and the dialog on it. */
  async function openImport(options?: Parameters<typeof visitPlants>[1]) {
    const { page } = await visitPlants(service.url, options)
    await page.getByRole('button', { name: 'Import' }).click()
    return { page, report: dialog(page, 'Import') }
  }

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
      const { page, report } = await openImport()
      if (name === 'plants.csv') await checkAccessibility(page)
      await choose(page, name, content)
      await report.getByText('2 new').waitFor()
      if (name === 'plants.csv') await checkAccessibility(page)
      assert.equal((await service.call({ path: '/plants' })).body, '[]')
      await start(page)
      await report.getByText('2 stored').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      await page.getByRole('cell', { name: '9007199254740993', exact: true }).waitFor()
      const { body } = await service.call({ path: '/plants' })
      assert.equal(body, `[${plants.trim().split('\n').reverse().join(',')}]`)
    })
  }

  it('says that an import was interrupted if a proxy answers with a page of its own', async () => {
    const { page, report } = await openImport()
    await choose(page, 'plants.ndjson', plants)
    await report.getByText('2 new').waitFor()
    await page.route('**/plants.ndjson*', (route) => route.fulfill({ body: '<h1>Sign in</h1>' }), {
      times: 1,
    })
    await start(page)
    await report.getByRole('alert').getByText('was interrupted').waitFor()
    await choose(page, 'plants.ndjson', plants)
    await start(page)
    await report.getByText('2 stored').waitFor()
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

  it('says before and after an import what becomes of each line, by the same report', async () => {
    await service.create('{"id":1,"name":"kept"}')
    await service.create('{"id":2,"name":"same"}')
    const { page, report } = await openImport()
    const rows = [
      'ID;Name;Tag;Preis;Lagerort',
      '1;other;;;',
      '2;same;;;',
      '3;new;x;4,50;A',
      'x;y;;;',
    ]
    await choose(page, 'sheet.csv', rows.join('\r\n'))
    await report.getByText('Nothing is stored yet.').waitFor()
    const [planned, reasons] = [await readItems(page), await readRefused(page)]
    assert.deepEqual(planned, [
      '1 new',
      '1 already there',
      '1 different: the stored plants stay',
      '1 refused',
    ])
    assert.match(reasons[0] ?? '', /^Line 2, plant 1: .* 1;other;;;$/)
    assert.match(reasons[1] ?? '', /^Line 5: Column "id" must be a whole number.* x;y;;;$/)
    await report.getByText('Columns that are not stored: Preis, Lagerort.').waitFor()
    await checkAccessibility(page)
    assert.equal((await service.call({ path: '/plants/3' })).status, 404)
    await start(page)
    await report.getByText('The import of sheet.csv is done:').waitFor()
    assert.equal((await readItems(page))[0], '1 stored')
    assert.deepEqual(await readRefused(page), reasons)
    await report.getByText('Columns that are not stored: Preis, Lagerort.').waitFor()
    await checkAccessibility(page)
    assert.equal(
      (await service.call({ path: '/plants/3' })).body,
      '{"id":3,"name":"new","tag":"x"}',
    )
  })

  it('checks again by another rule for ids that exist', async () => {
    await service.create('{"id":1,"name":"kept"}')
    const { page, report } = await openImport()
    await choose(page, 'x.ndjson', '{"id":1,"name":"other"}\n')
    await report.getByText('1 different: the stored plants stay').waitFor()
    await report.getByText('There is nothing to import.').waitFor()
    const button = report.getByRole('button', { name: 'Start import' })
    assert.equal(await button.isDisabled(), true)
    await report.getByLabel('already').selectOption({ label: 'Replace the stored plant' })
    await report.getByText('1 different, to be replaced').waitFor()
    await start(page)
    await report.getByText('1 replaced').waitFor()
    assert.equal((await service.call({ path: '/plants/1' })).body, '{"id":1,"name":"other"}')
  })

  it('gives the refused lines as a file that can be mended and imported', async () => {
    await service.create('{"id":1,"name":"kept"}')
    const { page, report } = await openImport()
    const long = 'l'.repeat(1_500)
    const rows = [
      'Preis, netto;id;name',
      '1;1;other',
      '2;x;"two\nlines"',
      `3;y;${long}`,
      '4;5;good',
    ]
    const lines = Array.from({ length: 30 }, (_, index) => `5;z${index};c`)
    await choose(page, 'sheet.csv', [...rows, ...lines].join('\n'))
    await report.getByText('And 13 lines more.').waitFor()
    assert.equal((await readRefused(page)).length, 20)
    await report.getByText('Without 1 line: too long, or too many.').waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      report.getByRole('button', { name: 'Download refused lines' }).click(),
    ])
    assert.equal(download.suggestedFilename(), 'refused-lines.csv')
    const text = readFileSync(await download.path(), 'utf8')
    const [header, first, second, third] = text.split('\n')
    assert.equal(header, '\ufeffPreis, netto;id;name;reason')
    assert.match(first ?? '', /^1;1;other;"The store has a plant with this id.*"$/)
    assert.equal(second, '2;x;"two')
    assert.match(third ?? '', /^lines";"Column ""id"" must be a whole number.*"$/)
    assert.ok(!text.includes('lll'), 'a line that was cut is not in the file')
    await choose(page, 'refused-lines.csv', text.replace('2;x;', '2;7;'))
    await report.getByText('1 new').waitFor()
    await report.getByText('Columns that are not stored: Preis, netto, reason.').waitFor()
    await start(page)
    await report.getByText('1 stored').waitFor()
    const { body } = await service.call({ path: '/plants/7' })
    assert.equal(body, '{"id":7,"name":"two\\nlines"}')
  })

  it('gives refused lines of NDJSON as they were', async () => {
    const { page, report } = await openImport()
    await choose(page, 'x.ndjson', '{"id":1}\n{"id":4,"name":"d"}\nno JSON\n')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      report.getByRole('button', { name: 'Download refused lines' }).click(),
    ])
    assert.equal(download.suggestedFilename(), 'refused-lines.ndjson')
    assert.equal(readFileSync(await download.path(), 'utf8'), '{"id":1}\nno JSON\n')
  })

  const wrong: [name: string, content: string | Buffer, sentence: RegExp][] = [
    ['empty.csv', '', /The file is empty/],
    ['header.csv', 'id,name\n', /There is nothing to import/],
    ['no-gzip.ndjson.gz', 'no gzip', /gzip/],
    [
      'other.csv',
      'Nr;Bezeichnung\n1;a\n',
      /no columns "id" and "name". It has: "Nr", "Bezeichnung"/,
    ],
    ['no-header.csv', '1,a\n2,b\n', /is no header/],
    ['twice.csv', 'id,ID,name\n1,1,a\n', /names the column "id" twice/],
    ['windows.csv', Buffer.from('id;name\n1;B\xfcro\n', 'latin1'), /CSV UTF-8/],
    ['sheet.xlsx', Buffer.from('PK\u0003\u0004\u0014\u0000', 'latin1'), /This is a workbook/],
  ]
  for (const [name, content, sentence] of wrong) {
    it(`says what is wrong with ${name}, and starts no import of it`, async () => {
      const { page, report } = await openImport()
      await choose(page, name, content)
      await report.getByText(sentence).first().waitFor()
      assert.equal(await report.getByRole('button', { name: 'Start import' }).isDisabled(), true)
    })
  }

  for (const step of ['check', 'import'] as const) {
    it(`shows how much is sent in the ${step}, which can be canceled`, async () => {
      const { page, report } = await openImport()
      if (step === 'import') {
        await choose(page, 'x.ndjson', plants)
        await report.getByText('2 new').waitFor()
      }
      await page.route('**/plants.ndjson*', () => {})
      if (step === 'import') await start(page)
      else await choose(page, 'x.ndjson', plants)
      await report.getByRole('progressbar', { name: 'Sent' }).waitFor()
      await report.getByRole('button', { name: 'Cancel' }).click()
      await report.getByRole('alert').getByText(`The ${step} was canceled.`).waitFor()
      assert.equal(await report.getByRole('progressbar').isVisible(), false)
      assert.equal((await service.call({ path: '/plants' })).body, '[]')
      await page.unrouteAll()
      await choose(page, 'x.ndjson', plants)
      await start(page)
      await report.getByText('2 stored').waitFor()
    })
  }

  it('takes a file that is dropped on the page or on the dialog, and stays', async () => {
    const { page } = await visitPlants(service.url)
    const report = dialog(page, 'Import').getByRole('status')
    const drop = (place: string, id: number) =>
      page.evaluate(`
        const carried = new DataTransfer()
        carried.items.add(new File(['{"id":${id},"name":"dropped"}'], '${id}.ndjson'))
        const options = { dataTransfer: carried, bubbles: true, cancelable: true }
        document.querySelector('${place}').dispatchEvent(new DragEvent('drop', options))`)
    assert.equal(await drop('body', 5), false)
    await report.getByText('5.ndjson has:').waitFor()
    assert.equal(await drop('dialog', 6), false)
    await report.getByText('6.ndjson has:').waitFor()
    await start(page)
    await report.getByText('1 stored').waitFor()
  })

  it('imports the files that spreadsheets write in English, French and German', async () => {
    const { page, report } = await openImport()
    for (const [index, name] of readable.entries()) {
      await choose(page, name, readFileSync(toPath(name)))
      if (index > 0) {
        await report.getByText(`${name} has:`).waitFor()
        await report.getByText('4 already there').waitFor()
        continue
      }
      await report.getByText('4 new').waitFor()
      await start(page)
      await report.getByText('4 stored').waitFor()
    }
    const { body } = await service.call({ path: '/plants' })
    assert.equal(body, `[${sheet.join(',')}]`)
    await choose(page, foreign, readFileSync(toPath(foreign)))
    await report.getByText('CSV UTF-8').first().waitFor()
  })

  it('checks every line of a long file, and writes large numbers with separators', async () => {
    const lines = Array.from({ length: 2_500 }, (_, index) => `{"id":${index},"name":"x"}\n`)
    const other = await startService('sqlite::memory:')
    const { page } = await visitPlants(other.url)
    await page.getByRole('button', { name: 'Import' }).click()
    await choose(page, 'long.ndjson.gz', gzipSync(`${lines.join('')}no JSON`))
    const report = dialog(page, 'Import')
    await report.getByText('2,500 new').waitFor()
    await report.getByText('Line 2,501:').waitFor()
    await start(page)
    await report.getByText('2,500 stored').waitFor()
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

/** What the report counts. */
function readItems(page: Page): Promise<string[]> {
  return dialog(page, 'Import').locator('ul:not(.refused) > li').allTextContents()
}

function readRefused(page: Page): Promise<string[]> {
  return dialog(page, 'Import').locator('.refused > li').allTextContents()
}
