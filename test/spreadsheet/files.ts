import { join } from 'node:path'

/** The folder of plants.fods and of the files that LibreOffice has made of it. */
export const folder = import.meta.dirname

/** The plants of plants.fods, as a list has them. */
export const plants = [
  '{"id":-2,"name":"Ficus; benjamina, \\"Danielle\\""}',
  '{"id":1,"name":"Käferbaum „groß“","tag":"drinnen"}',
  '{"id":3,"name":"première ligne\\ndeuxième ligne","tag":"Œillet d’été, 5 €"}',
  '{"id":9007199254740993,"name":"-5 °C","tag":"=1+1"}',
]

/**
 * How LibreOffice is told to write each file: delimiter, quote, character set (76 is UTF-8, 1 is
 * Windows-1252), first line, columns, language, and whether all text is quoted. Excel adds what
 * `excel` says: it ends records with CR LF and marks UTF-8, and German and French ones have
 * semicolons.
 */
export const files = {
  'libreoffice-de.csv': { filter: '59,34,76,1,,1031' },
  'libreoffice-en.csv': { filter: '44,34,76,1,,1033,true' },
  'libreoffice-fr.tsv': { filter: '9,34,76,1,,1036' },
  'excel-de.csv': { filter: '59,34,76,1,,1031', excel: '\ufeff' },
  'excel-en.csv': { filter: '44,34,76,1,,1033', excel: '\ufeff' },
  'excel-fr.csv': { filter: '59,34,76,1,,1036', excel: 'sep=;\r\n' },
  'windows-1252.csv': { filter: '59,34,1,1,,1031', excel: '' },
} as const satisfies Record<string, { filter: string; excel?: string }>

export type FileName = keyof typeof files

/** The one that is not UTF-8. */
export const foreign: FileName = 'windows-1252.csv'
export const readable = (Object.keys(files) as FileName[]).filter((name) => name !== foreign)

export function toPath(name: FileName): string {
  return join(folder, name)
}
