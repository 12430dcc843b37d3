import type { OnConflict } from '../../../client/index.ts'
import { parse } from '../../../client/json.ts'
import { PlantStoreError } from '../../../client/plant-store-error.ts'
import { toFailure } from '../../../client/request.ts'
import { delimiters, type Format, formats } from '../../../src/contract/formats.ts'
import type { ImportReport } from '../../../src/contract/shapes.ts'
import {
  buildButton,
  buildButtons,
  buildChoice,
  buildField,
  element,
  fill,
  format,
  openDialog,
  toCount,
} from '../dom.ts'
import type { DialogParts } from './plant-dialogs.ts'
import { isTokenRefused, isUnanswered, type Session, showFailure } from './token-session.ts'

/** A format, or CSV as the spreadsheet of this person opens it best. */
export type ExportFormat = Format | 'spreadsheet'

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
  const headers = { Authorization: `Bearer ${session.token}` }
  let response: Response
  let content: Blob
  try {
    response = await fetch(`${session.url}/plants.${format}?${query}`, { headers })
    content = await response.blob()
  } catch (cause) {
    throw new PlantStoreError('The connection was lost.', { cause })
  }
  if (!response.ok) {
    const { status, headers } = response
    throw toFailure({ status, headers, text: await content.text() })
  }
  saveFile(`plants${isForSpreadsheet ? '-for-spreadsheet' : ''}.${format}`, content)
}

/** Gives a file to the browser to be saved. */
function saveFile(name: string, content: Blob): void {
  const href = URL.createObjectURL(content)
  element('a', { href, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

/** Spreadsheets separate cells by semicolons where a comma is part of a number. */
function hasDecimalComma(): boolean {
  return new Intl.NumberFormat(navigator.language).format(0.5).includes(',')
}

/** The format of a file: by its name, or else by its first character. */
async function findFormat(file: File): Promise<Format> {
  const name = file.name.toLowerCase()
  if (/\.(csv|tsv|txt|xlsx|ods)(\.gz)?$/.test(name)) return 'csv'
  if (/\.(ndjson|jsonl|json)(\.gz)?$/.test(name)) return 'ndjson'
  return /^\s*[{[]/.test(await file.slice(0, 100).text()) ? 'ndjson' : 'csv'
}

/** Sends a file as it is. An XMLHttpRequest, because fetch does not report upload progress. */
async function uploadPlants(
  { url, token }: Session,
  file: File,
  query: Record<string, string>,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<ImportReport> {
  const format = await findFormat(file)
  signal.throwIfAborted()
  const request = new XMLHttpRequest()
  request.open('POST', `${url}/plants.${format}?${new URLSearchParams(query)}`)
  request.setRequestHeader('Authorization', `Bearer ${token}`)
  request.setRequestHeader('Content-Type', formats[format].mediaType)
  if (/\.gz$/i.test(file.name)) request.setRequestHeader('Content-Encoding', 'gzip')
  request.upload.addEventListener('progress', ({ loaded, total }) => onProgress(loaded / total))
  signal.addEventListener('abort', () => request.abort())
  const { promise, resolve, reject } = Promise.withResolvers<ImportReport>()
  const lose = (cause: unknown) => reject(new PlantStoreError('The answer was lost.', { cause }))
  request.addEventListener('load', () => {
    const { status, responseText: text } = request
    if (status !== 200) return reject(toFailure({ status, headers: new Headers(), text }))
    try {
      resolve(parse(text, ({ refused }: ImportReport) => refused))
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

const rules: Record<OnConflict, string> = {
  fail: 'Keep the stored plant, list it',
  skip: 'Keep the stored plant',
  replace: 'Replace the stored plant',
}

/** What becomes of lines: what the import would do, and what it has done. */
const outcomes = [
  ['stored', 'new', 'stored'],
  ['alreadyThere', 'already there', 'already there'],
  ['replaced', 'different, to be replaced', 'replaced'],
  ['skipped', 'different: the stored plants stay', 'different: the stored plants stayed'],
  ['conflicts', 'different: the stored plants stay', 'different: the stored plants stayed'],
  ['invalid', 'refused', 'refused'],
] as const

type Step = 'check' | 'import'

const words = {
  check: {
    rest: 'All sent: checking the rest …',
    canceled: 'The check was canceled. Nothing is stored.',
    lost: 'The check was interrupted. Nothing is stored: choose the file again.',
    title: (file: Node) => ['Nothing is stored yet. ', file, ' has:'],
  },
  import: {
    rest: 'All sent: storing the rest …',
    canceled: 'The import was canceled. What it stored before stays: import the file again.',
    lost: 'The import was interrupted. What it stored before stays: import the file again.',
    title: (file: Node) => ['The import of ', file, ' is done:'],
  },
}

/** The most refused lines that are listed. */
const maxListed = 20

/** Opens the dialog that has a file checked, and imported on demand. Resolves when it is closed. */
export async function importPlants(parts: DialogParts, dropped?: File): Promise<void> {
  let run = new AbortController()
  let chosen: File | undefined
  const rule = buildField('If an id already exists', buildChoice(...Object.entries(rules)))
  rule.control.addEventListener('change', () => void send('check'))
  const file = buildField(
    'File',
    element('input', {
      type: 'file',
      accept: '.ndjson,.jsonl,.csv,.tsv,.gz,.json,.txt',
      change: () => void choose(file.control.files?.[0]),
      // The same file can be chosen once more.
      click: () => {
        file.control.value = ''
      },
    }),
    'CSV, as spreadsheets write it, or NDJSON, also gzipped. Choose a file, or drop it here.',
  )
  const progress = element('progress', { max: 1, 'aria-label': 'Sent' })
  const outcome = element('div', { class: 'stack', role: 'status' })
  const problem = element('div', { class: 'refusal', role: 'alert' })
  const start = buildButton('Start import', () => send('import'), { class: 'primary' })
  const cancel = buildButton('Cancel', () => run.abort())
  const close = buildButton('Close', () => dialog.close())

  function showRunning(isRunning: boolean): void {
    for (const one of [progress, cancel]) one.hidden = !isRunning
    for (const { control } of [rule, file]) control.disabled = isRunning
  }

  async function choose(next: File | undefined): Promise<void> {
    if (next === undefined || !cancel.hidden) return
    fill(outcome)
    start.disabled = true
    if (next.size === 0) return fill(problem, 'The file is empty.')
    chosen = next
    await send('check')
  }

  /** Sends the file: first for the report that its import would give, then to import it. */
  async function send(step: Step): Promise<void> {
    if (chosen === undefined) return
    run = new AbortController()
    const { signal } = run
    const { rest, canceled, lost } = words[step]
    const onProgress = (share: number) => {
      progress.value = share
      fill(outcome, share < 1 ? `${Math.floor(share * 100)} % sent` : rest)
    }
    start.disabled = true
    fill(problem)
    onProgress(0)
    showRunning(true)
    try {
      const query = { 'on-conflict': rule.control.value, 'dry-run': String(step === 'check') }
      const report = await uploadPlants(parts.session(), chosen, query, onProgress, signal)
      start.disabled = step === 'import' || report.stored + report.replaced === 0
      fill(outcome, ...describeReport(chosen, report, step))
    } catch (error) {
      fill(outcome)
      if (signal.aborted) fill(problem, canceled)
      else if (isUnanswered(error)) fill(problem, lost)
      else showFailure(problem, error)
      if (isTokenRefused(error)) parts.onTokenRefused(error)
    } finally {
      showRunning(false)
    }
  }

  start.disabled = true
  showRunning(false)
  const content = [rule.element, file.element, progress, outcome, problem]
  const dialog = openDialog('Import', [
    element('div', { class: 'stack' }, ...content, buildButtons(start, cancel, close)),
  ])
  acceptDrops(dialog.element, choose)
  void choose(dropped)
  await dialog.closed
  run.abort()
}

/** Takes files that are dropped here. The browser would leave the page to show them. */
export function acceptDrops(
  place: Window | HTMLElement,
  onFile: (file: File | undefined) => void,
  options?: AddEventListenerOptions,
): void {
  function accept(event: Event): void {
    const { dataTransfer } = event as DragEvent
    if (!dataTransfer?.types.includes('Files')) return
    event.preventDefault()
    event.stopPropagation()
    if (event.type === 'drop') onFile(dataTransfer.files[0])
  }
  for (const type of ['dragover', 'drop']) place.addEventListener(type, accept, options)
}

/** A report in words: what the import would do, or what it has done. */
function describeReport(file: File, report: ImportReport, step: Step): HTMLElement[] {
  const { refused, refusedInAll, endedAtLine, ignoredColumns = [] } = report
  const name = element('strong', element('bdi', file.name))
  const counts = outcomes
    .filter(([key]) => report[key] > 0)
    .map(([key, planned, done]) => `${format(report[key])} ${step === 'check' ? planned : done}`)
  const isVain = report.stored + report.replaced === 0
  const notes = [
    isVain && step === 'check' && 'There is nothing to import.',
    ignoredColumns.length > 0 && `Columns that are not stored: ${ignoredColumns.join(', ')}.`,
    endedAtLine !== undefined &&
      `Lines after ${format(endedAtLine)} were not read, because too many were refused.`,
  ]
  return [
    element('p', ...words[step].title(name)),
    element('ul', ...(counts.length > 0 ? counts : ['no plants']).map((one) => element('li', one))),
    ...notes.flatMap((note) => (note === false ? [] : element('p', note))),
    ...describeRefused(report, refusedInAll - Math.min(refused.length, maxListed)),
  ]
}

function describeRefused(report: ImportReport, others: number): HTMLElement[] {
  const { refused, header } = report
  if (refused.length === 0) return []
  const lines = refused.slice(0, maxListed).map(({ line, id, message, text }) => {
    const place = `Line ${format(line)}${id === undefined ? '' : `, plant ${id}`}: `
    return element('li', place, message, ' ', element('code', element('bdi', text)))
  })
  // A line that was cut could be imported as it is.
  const whole = refused.filter(({ text }) => text.length < maxWhole)
  const missing = report.refusedInAll - whole.length
  const download = buildButton('Download refused lines', () => {
    const name = header === undefined ? 'refused-lines.ndjson' : 'refused-lines.csv'
    saveFile(name, new Blob([toFile(whole, header)]))
  })
  const absent = missing > 0 ? `Without ${toCount(missing, 'line')}: too long, or too many.` : ''
  return [
    element('ul', { class: 'refused', tabindex: 0 }, ...lines),
    element('p', others > 0 ? `And ${toCount(others, 'line')} more.` : ''),
    element('p', download, ' ', absent),
  ]
}

/** Longer texts of refused lines may have been cut. */
const maxWhole = 999

/** The refused lines as they were; in CSV with their header, and the reason in a last column. */
function toFile(refused: ImportReport['refused'], header: string | undefined): string {
  if (header === undefined) return refused.map(({ text }) => `${text}\n`).join('')
  const delimiter = findDelimiter(header)
  const rows = refused.map(
    ({ text, message }) => `${text}${delimiter}"${message.replaceAll('"', '""')}"\n`,
  )
  return `\ufeff${header}${delimiter}reason\n${rows.join('')}`
}

/** The delimiter with which a header that the service has read names an id and a name. */
function findDelimiter(header: string): string {
  const separates = (delimiter: string) => {
    const names = header.split(delimiter).map((name) => name.replaceAll('"', '').trim())
    return ['id', 'name'].every((name) => names.some((one) => one.toLowerCase() === name))
  }
  return Object.values(delimiters).find(separates) ?? delimiters.comma
}
