import { WrongConfig } from '../../config.ts'
import { delimiterNames, delimiters, type Format } from '../../contract/formats.ts'
import { type Entry, UnreadableFile } from '../../transfer/entry.ts'
import { toFormat } from '../files/input.ts'

/** How a file is written. */
export interface FileForm {
  readonly format: Format
  readonly delimiter: string | undefined
}

interface FormFlags {
  readonly format?: string
  readonly delimiter?: string
}

/** The form given by the flags, or else by the extension of the file. */
export function toForm(path: string, { format: given, delimiter }: FormFlags): FileForm {
  const format = toFormat(path, given)
  if (delimiter === undefined) return { format, delimiter }
  if (format !== 'csv') throw new WrongConfig(['--delimiter is for CSV only.'])
  return { format, delimiter: toDelimiter(delimiter) }
}

function toDelimiter(text: string): string {
  const name = delimiterNames.find((one) => one === text)
  if (name !== undefined) return delimiters[name]
  if (text === '\\t') return '\t'
  if (text.length === 1 && !/["\r\n]/.test(text)) return text
  throw new WrongConfig([
    '--delimiter must be one character, or comma, semicolon or tab; no quote and no newline.',
  ])
}

/** A file that does not begin with an object is another format: one message, not one per line. */
export async function* refuseOtherFormats(
  groups: AsyncIterable<Entry[]>,
  { format }: FileForm,
): AsyncGenerator<Entry[]> {
  let isFirst = format === 'ndjson'
  for await (const entries of groups) {
    const [first] = entries
    if (isFirst && first?.refusal !== undefined && !/^[ \t\r]*\{/.test(first.text)) {
      throw new UnreadableFile(40001, first.line, explainFormat(first.text))
    }
    if (first !== undefined) isFirst = false
    yield entries
  }
}

function explainFormat(text: string): string {
  const hint = text.trimStart().startsWith('[')
    ? "Convert a JSON array with: jq -c '.[]'"
    : 'For CSV, add --format csv.'
  return `This is not NDJSON, which has one JSON object per line. ${hint}`
}
