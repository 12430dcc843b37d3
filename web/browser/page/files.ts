import { PlantStoreError } from '../../../client/errors.ts'
import type { OnConflict } from '../../../client/index.ts'
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
  const href = URL.createObjectURL(content)
  element('a', {
    href,
    download: `plants${isForSpreadsheet ? '-for-spreadsheet' : ''}.${format}`,
  }).click()
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

/** Spreadsheets separate cells by semicolons where a comma is part of a number. */
function hasDecimalComma(): boolean {
  return new Intl.NumberFormat(navigator.language).format(0.5).includes(',')
}

export interface Upload {
  readonly file: File
  readonly format: FileFormat
  readonly onConflict: OnConflict
  readonly signal: AbortSignal
  onProgress(share: number): void
}

/** Sends a file as it is. An XMLHttpRequest, because fetch does not report upload progress. */
export function uploadPlants({ url, token }: Session, upload: Upload): Promise<ImportReport> {
  const { file, format, onConflict, signal, onProgress } = upload
  const request = new XMLHttpRequest()
  request.open('POST', `${url}/plants.${format}?on-conflict=${onConflict}`)
  request.setRequestHeader('Authorization', `Bearer ${token}`)
  request.setRequestHeader('Content-Type', mediaTypes[format])
  if (isGzip(file)) request.setRequestHeader('Content-Encoding', 'gzip')
  request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total))
  signal.addEventListener('abort', () => request.abort())
  const { promise, resolve, reject } = Promise.withResolvers<ImportReport>()
  const message =
    'The import was interrupted. What was stored before stays stored: import the file again.'
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

export function isGzip(file: File): boolean {
  return file.name.toLowerCase().endsWith('.gz')
}
