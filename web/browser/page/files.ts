import { PlantStoreError } from '../../../client/index.ts'
import { element } from '../dom/element.ts'
import type { Session } from './session.ts'

export type FileFormat = 'ndjson' | 'csv'
/** A format, or CSV as spreadsheets open it best. */
export type ExportFormat = FileFormat | 'spreadsheet'
export type OnConflict = 'fail' | 'skip' | 'replace'

/** The parts of an import report that the page shows. */
export interface Report {
  readonly lines: number
  readonly stored: number
  readonly alreadyThere: number
  readonly replaced: number
  readonly skipped: number
  readonly refused: readonly { line: number; id?: string | number; message: string }[]
  readonly refusedInAll: number
  /** The line at which the import ended, if that was before the end of the file. */
  readonly endedAtLine?: number
}

const mediaTypes: Record<FileFormat, string> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
}

/** Downloads all plants, or those with a tag. The client lists plants, but has no files. */
export async function downloadPlants(
  { url, token }: Session,
  exported: ExportFormat,
  tag: string | undefined,
): Promise<void> {
  const format = exported === 'spreadsheet' ? 'csv' : exported
  const query = new URLSearchParams()
  if (exported === 'spreadsheet') query.set('spreadsheet', 'true')
  if (tag !== undefined) query.set('tag', tag)
  const headers = { Authorization: `Bearer ${token}` }
  try {
    const response = await fetch(`${url}/plants.${format}?${query}`, { headers })
    if (!response.ok) throw toRefusal(response.status, await response.text())
    saveAs(`plants.${format}`, await response.blob())
  } catch (cause) {
    throw cause instanceof PlantStoreError ? cause : lost('The export was interrupted.', cause)
  }
}

function saveAs(name: string, content: Blob): void {
  const href = URL.createObjectURL(content)
  const link = element('a', { href, download: name, hidden: true })
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

export interface Upload {
  readonly file: File
  readonly format: FileFormat
  readonly onConflict: OnConflict
  readonly signal: AbortSignal
  onProgress(share: number): void
}

/** Sends a file as it is. An XMLHttpRequest, because fetch does not report upload progress. */
export function uploadPlants({ url, token }: Session, upload: Upload): Promise<Report> {
  const { file, format, onConflict, signal, onProgress } = upload
  const request = new XMLHttpRequest()
  request.open('POST', `${url}/plants.${format}?on-conflict=${onConflict}`)
  request.setRequestHeader('Authorization', `Bearer ${token}`)
  request.setRequestHeader('Content-Type', mediaTypes[format])
  if (isGzip(file)) request.setRequestHeader('Content-Encoding', 'gzip')
  request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total))
  signal.addEventListener('abort', () => request.abort())
  return new Promise((resolve, reject) => {
    const broken = (cause: unknown) =>
      reject(
        lost(
          'The import was interrupted. What was stored before stays stored: import the file again.',
          cause,
        ),
      )
    request.addEventListener('load', () => {
      if (request.status === 200) resolve(parseExact<Report>(request.responseText))
      else reject(toRefusal(request.status, request.responseText))
    })
    request.addEventListener('error', broken)
    request.addEventListener('abort', broken)
    request.send(file)
  })
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown

/** Parses JSON. An id, which JavaScript might round, is kept as its digits. */
export function parseExact<Shape>(text: string): Shape {
  const keepDigits: Reviver = (key, value, context) =>
    key === 'id' ? (context?.source ?? value) : value
  return (JSON.parse as (text: string, reviver: Reviver) => Shape)(text, keepDigits)
}

export function isGzip(file: File): boolean {
  return file.name.toLowerCase().endsWith('.gz')
}

export function toRefusal(status: number, text: string): PlantStoreError {
  try {
    const { error, message } = JSON.parse(text)
    return new PlantStoreError(message, { status, error })
  } catch {
    return new PlantStoreError(`The service answered ${status}.`, { status, error: status * 100 })
  }
}

/** A lost connection. No answer of the service has the number 0. */
function lost(message: string, cause: unknown): PlantStoreError {
  return new PlantStoreError(message, { error: 0, cause })
}
