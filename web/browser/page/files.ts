import { PlantStoreError } from '../../../client/errors.ts'
import { parse } from '../../../client/json.ts'
import type { ImportReport } from '../../../src/contract/shapes.ts'
import { element } from '../dom/element.ts'
import { readPath, type Session, toRefusal } from './session.ts'

export type FileFormat = 'ndjson' | 'csv'
/** A format, or CSV as the spreadsheet of this person opens it best. */
export type ExportFormat = FileFormat | 'spreadsheet'

const mediaTypes: Record<FileFormat, string> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
}

/** Downloads all plants, or those with a tag. The client lists plants, but has no files. */
export async function downloadPlants(
  session: Session,
  exported: ExportFormat,
  tag: string | undefined,
): Promise<void> {
  const isForSpreadsheet = exported === 'spreadsheet'
  const format = isForSpreadsheet ? 'csv' : exported
  const query = new URLSearchParams()
  if (isForSpreadsheet) query.set('spreadsheet', 'true')
  if (isForSpreadsheet && hasDecimalComma()) query.set('delimiter', 'semicolon')
  if (tag !== undefined) query.set('tag', tag)
  const content = await readPath(session, `/plants.${format}?${query}`, (answer) => answer.blob())
  saveFile(`plants${isForSpreadsheet ? '-for-spreadsheet' : ''}.${format}`, content)
}

/** Gives a file to the browser to be saved. */
export function saveFile(name: string, content: Blob): void {
  const href = URL.createObjectURL(content)
  element('a', { href, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

/** Spreadsheets separate cells by semicolons where a comma is part of a number. */
function hasDecimalComma(): boolean {
  return new Intl.NumberFormat(navigator.language).format(0.5).includes(',')
}

/** The format of a file: by its name, or else by its first character. */
export async function findFormat(file: File): Promise<FileFormat> {
  const name = file.name.toLowerCase()
  if (/\.(csv|tsv|txt|xlsx|ods)(\.gz)?$/.test(name)) return 'csv'
  if (/\.(ndjson|jsonl|json)(\.gz)?$/.test(name)) return 'ndjson'
  return /^\s*[{[]/.test(await file.slice(0, 100).text()) ? 'ndjson' : 'csv'
}

export interface Upload {
  readonly file: File
  readonly format: FileFormat
  /** The rule for ids that exist. */
  readonly onConflict: string
  readonly isDryRun: boolean
  readonly signal: AbortSignal
  onProgress(share: number): void
}

/** Sends a file as it is. An XMLHttpRequest, because fetch does not report upload progress. */
export function uploadPlants({ url, token }: Session, upload: Upload): Promise<ImportReport> {
  const { file, format, onConflict, isDryRun, signal, onProgress } = upload
  const request = new XMLHttpRequest()
  const query = `on-conflict=${onConflict}${isDryRun ? '&dry-run=true' : ''}`
  request.open('POST', `${url}/plants.${format}?${query}`)
  request.setRequestHeader('Authorization', `Bearer ${token}`)
  request.setRequestHeader('Content-Type', mediaTypes[format])
  if (/\.gz$/i.test(file.name)) request.setRequestHeader('Content-Encoding', 'gzip')
  request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total))
  signal.addEventListener('abort', () => request.abort())
  const { promise, resolve, reject } = Promise.withResolvers<ImportReport>()
  const message = isDryRun
    ? 'The check was interrupted. Nothing is stored: choose the file again.'
    : 'The import was interrupted. What was stored before stays stored: import the file again.'
  // No answer of the service has the number 0.
  const lose = (cause: unknown) => reject(new PlantStoreError(message, { error: 0, cause }))
  request.addEventListener('load', () => {
    const { status, responseText } = request
    if (status !== 200) return reject(toRefusal(status, responseText))
    try {
      resolve(parse(responseText, ({ refused }: ImportReport) => refused))
    } catch (cause) {
      // A proxy answered with a page of its own.
      lose(cause)
    }
  })
  request.addEventListener('error', lose)
  request.addEventListener('abort', lose)
  request.send(file)
  return promise
}
