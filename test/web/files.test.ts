import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { beforeEach, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Page, Route } from 'playwright-core'
import { browserMissing } from '../support/browser.ts'
import { startService } from '../support/service.ts'
import { checkAccessibility, dialog, openForm, visitPlants } from './visit.ts'

const service = await startService('sqlite::memory:')

describe('files of plants', { skip: browserMissing }, () => {
  beforeEach(deletePlants)

  const readPlants = async () => (await service.call({ path: '/plants?limit=1000' })).body

  async function deletePlants(): Promise<void> {
    for (const [, id] of (await readPlants()).matchAll(/"id":(-?\d+)/g)) {
      await service.call({ method: 'DELETE', path: `/plants/${id}` })
    }
  }

  /** Opens the page, and the dialog on it. */
  async function openImport(options?: Parameters<typeof visitPlants>[1]) {
    const { page } = await visitPlants(service.url, options)
    return { page, report: await openForm(page, 'Import') }
  }

  async function choose(page: Page, name: string, content: string | Buffer): Promise<void> {
    const file = { name, mimeType: 'text/plain', buffer: Buffer.from(content) }
    await dialog(page, 'Import').getByLabel('File').setInputFiles(file)
  }

  async function download(page: Page, button: string): Promise<[name: string, text: string]> {
    const downloads = page.waitForEvent('download')
    await page.getByRole('button', { name: button }).click()
    const file = await downloads
    return [file.suggestedFilename(), readFileSync(await file.path(), 'utf8')]
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
  it('imports CSV, NDJSON, gzip and files without an ending, and shows the plants', async () => {
    const { page, report } = await openImport()
    await checkAccessibility(page)
    for (const [name, content] of files) {
      await choose(page, name, content)
      await report.getByText('2 new').waitFor()
      assert.equal(await readPlants(), '[]')
      await start(page)
      await report.getByText(`The import of ${name} is done:`).waitFor()
      await report.getByText('2 stored').waitFor()
      await page.getByRole('button', { name: 'Close' }).click()
      const row = page.getByRole('cell', { name: '9007199254740993', exact: true })
      await row.waitFor()
      assert.equal(await readPlants(), `[${plants.trim().split('\n').reverse().join(',')}]`)
      await deletePlants()
      await row.waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Import' }).click()
    }
  })

  it('shows imported plants also where no stream tells of them', async () => {
    const silent = await startService('sqlite::memory:', { env: { JOURNAL_KEEP: 'off' } })
    const { page } = await visitPlants(silent.url)
    await page.getByText('Live updates are off').waitFor()
    await page.getByRole('button', { name: 'Import' }).click()
    await choose(page, 'plants.ndjson', plants)
    await start(page)
    await dialog(page, 'Import').getByText('2 stored').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('cell', { name: '9007199254740993', exact: true }).waitFor()
  })

  it('says before and after an import what becomes of each line, by the rule that one chooses', async () => {
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
    assert.equal(await service.read(3), '{"id":3,"name":"new","tag":"x"}')

    // Chosen again, with another rule for ids that exist.
    await choose(page, 'x.ndjson', '{"id":1,"name":"other"}\n')
    await report.getByText('There is nothing to import.').waitFor()
    const button = report.getByRole('button', { name: 'Start import' })
    assert.equal(await button.isDisabled(), true)
    await report.getByLabel('already').selectOption({ label: 'Replace the stored plant' })
    await report.getByText('1 different, to be replaced').waitFor()
    await start(page)
    await report.getByText('1 replaced').waitFor()
    assert.equal(await service.read(1), '{"id":1,"name":"other"}')
  })

  it('gives the refused lines as they were, as a file that can be mended and imported', async () => {
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
    const more = Array.from({ length: 30 }, (_, index) => `5;z${index};c`)
    await choose(page, 'sheet.csv', [...rows, ...more].join('\n'))
    await report.getByText('And 13 lines more.').waitFor()
    assert.equal((await readRefused(page)).length, 20)
    await report.getByText('Without 1 line: too long, or too many.').waitFor()
    const [fileName, text] = await download(page, 'Download refused lines')
    assert.equal(fileName, 'refused-lines.csv')
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
    assert.equal(await service.read(7), '{"id":7,"name":"two\\nlines"}')
    await choose(page, 'x.ndjson', '{"id":1}\n{"id":4,"name":"d"}\nno JSON\n')
    await report.getByText('x.ndjson has:').waitFor()
    const lines = ['refused-lines.ndjson', '{"id":1}\nno JSON\n']
    assert.deepEqual(await download(page, 'Download refused lines'), lines)
  })

  const wrong: [name: string, content: string | Buffer, sentence: RegExp][] = [
    ['empty.csv', '', /The file is empty/],
    ['header.csv', 'id,name\n', /There is nothing to import/],
    ['no-gzip.ndjson.gz', 'no gzip', /The gzip data is damaged/],
    [
      'other.csv',
      'Nr;Bezeichnung\n1;a\n',
      /must name the columns "id" and "name".* It is: "Nr;Bezeichnung"/,
    ],
    ['sheet.xlsx', Buffer.from('PK\u0003\u0004\u0014\u0000', 'latin1'), /This is a workbook/],
  ]
  it('says what is wrong with a file, and starts no import of it', async () => {
    const { page, report } = await openImport()
    for (const [name, content, sentence] of wrong) {
      await choose(page, name, content)
      await report.getByText(sentence).first().waitFor()
      const button = report.getByRole('button', { name: 'Start import' })
      assert.equal(await button.isDisabled(), true, name)
    }
  })

  it('shows how much is sent, can be canceled, and says what a proxy has interrupted', async () => {
    const { page, report } = await openImport()
    for (const step of ['check', 'import'] as const) {
      await page.route('**/plants.ndjson*', () => {})
      if (step === 'import') await start(page)
      else await choose(page, 'x.ndjson', plants)
      await report.getByRole('progressbar', { name: 'Sent' }).waitFor()
      await report.getByRole('button', { name: 'Cancel' }).click()
      await report.getByRole('alert').getByText(`The ${step} was canceled.`).waitFor()
      assert.equal(await report.getByRole('progressbar').isVisible(), false)
      assert.equal(await readPlants(), '[]')
      await page.unrouteAll()
      await choose(page, 'x.ndjson', plants)
      await report.getByText('2 new').waitFor()
    }
    const signInPage = (route: Route) => route.fulfill({ body: '<h1>Sign in</h1>' })
    await page.route('**/plants.ndjson*', signInPage, { times: 1 })
    await start(page)
    await report.getByRole('alert').getByText('was interrupted').waitFor()
    await choose(page, 'x.ndjson', plants)
    await start(page)
    await report.getByText('2 stored').waitFor()
  })

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

  it('exports for the spreadsheets of one’s language, or byte for byte what the service sends', async () => {
    await service.create('{"id":1,"name":"a","tag":"x & y"}')
    await service.create('{"id":2,"name":"b"}')
    for (const [locale, separator] of [
      ['en-GB', ','],
      ['de-DE', ';'],
    ] as const) {
      const { page } = await visitPlants(service.url, { locale })
      await page.getByText('Exports all plants', { exact: true }).waitFor()
      await page.getByLabel('Filter by tag').fill('x & y')
      await page.getByText('Plants with the tag “x & y”: 1').waitFor()
      await page.getByText('Exports plants with the tag “x & y”', { exact: true }).waitFor()
      const lines = [
        ['id', 'name', 'tag'],
        ['1', 'a', 'x & y'],
      ].map((cells) => `${cells.join(separator)}\n`)
      const file = ['plants-for-spreadsheet.csv', `\ufeff${lines.join('')}`]
      assert.deepEqual(await download(page, 'Export'), file)
      await page.getByLabel('Search by name').fill('a')
      await page.getByText('Exports plants with the tag “x & y”, not only those found').waitFor()
      for (const [format, text] of [
        ['CSV', 'id,name,tag\n1,a,x & y\n'],
        ['NDJSON', '{"id":1,"name":"a","tag":"x & y"}\n'],
      ] as const) {
        await page.getByLabel('Format').selectOption(`${format}, exact`)
        const exact = [`plants.${format.toLowerCase()}`, text]
        assert.deepEqual(await download(page, 'Export'), exact)
      }
    }
  })
})

/** What the report counts. */
function readItems(page: Page): Promise<string[]> {
  return dialog(page, 'Import').locator('ul:not(.refused) > li').allTextContents()
}

function readRefused(page: Page): Promise<string[]> {
  return dialog(page, 'Import').locator('.refused > li').allTextContents()
}
