import { buildButtons, openDialog } from '../dom/dialog.ts'
import { element, fill } from '../dom/element.ts'
import { buildField } from '../dom/field.ts'
import { findFormat, type OnConflict, type Report, uploadPlants } from './files.ts'
import { isTokenRefused, toSentence } from './sentences.ts'
import type { Session } from './session.ts'

export interface ImportParts {
  readonly session: () => Session
  onTokenRefused(error: unknown): void
}

const choices: Record<OnConflict, string> = {
  fail: 'Keep it and tell me',
  skip: 'Keep it',
  replace: 'Replace it',
}

/** Opens the dialog that imports a file. Resolves when it is closed. */
export async function importPlants(parts: ImportParts, dropped?: File): Promise<void> {
  const life = new AbortController()
  let isRunning = false
  const file = buildField(
    'File',
    element('input', { type: 'file', accept: '.ndjson,.jsonl,.csv,.gz,.json,.txt' }),
    'NDJSON or CSV, also gzipped. Choose one, or drop it here.',
  )
  const conflict = buildField(
    'If another plant has the id already',
    element(
      'select',
      {},
      ...Object.entries(choices).map(([value, text]) => element('option', { value }, text)),
    ),
  )
  const progress = element('progress', { max: 1, value: 0, 'aria-label': 'Sent' })
  const outcome = element('div', { class: 'outcome', role: 'status' })
  const close = element('button', { type: 'button', click: () => dialog.close() }, 'Close')
  progress.hidden = true

  async function start(chosen: File): Promise<void> {
    if (isRunning) return
    isRunning = true
    fill(outcome)
    file.refuse(undefined)
    try {
      const format = await findFormat(chosen)
      if (typeof format === 'object') return file.refuse(format.fault)
      progress.value = 0
      progress.hidden = false
      const onProgress = (share: number) => {
        progress.value = share
        fill(
          outcome,
          share < 1 ? `${Math.floor(share * 100)} % sent` : 'All sent: storing the rest…',
        )
      }
      const onConflict = conflict.control.value as OnConflict
      const upload = { file: chosen, format, onConflict, onProgress, signal: life.signal }
      fill(outcome, ...describeReport(chosen.name, await uploadPlants(parts.session(), upload)))
    } catch (error) {
      fill(outcome)
      file.refuse(toSentence(error))
      if (isTokenRefused(error)) parts.onTokenRefused(error)
    } finally {
      progress.hidden = true
      isRunning = false
      // The same file can be chosen once more.
      file.control.value = ''
    }
  }

  file.control.addEventListener('change', () => {
    const [chosen] = file.control.files ?? []
    if (chosen !== undefined) void start(chosen)
  })
  const content = [file.element, conflict.element, progress, outcome, buildButtons(close)]
  const dialog = openDialog('Import', [element('div', { class: 'import' }, ...content)])
  dialog.element.addEventListener('drop', (event) => {
    event.preventDefault()
    event.stopPropagation()
    const [chosen] = event.dataTransfer?.files ?? []
    if (chosen !== undefined) void start(chosen)
  })
  if (dropped !== undefined) void start(dropped)
  await dialog.closed
  life.abort()
}

function describeReport(name: string, report: Report): HTMLElement[] {
  const { stored, alreadyThere, replaced, skipped, refused, refusedInAll, endedAtLine } = report
  const parts = [
    `${stored} stored`,
    ...(alreadyThere > 0 ? [`${alreadyThere} already there`] : []),
    ...(replaced > 0 ? [`${replaced} replaced`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(refusedInAll > 0 ? [`${refusedInAll} refused`] : []),
  ]
  const end =
    endedAtLine === undefined
      ? ''
      : ` The import ended at line ${endedAtLine}, because too many lines were refused.`
  const summary = element('p', {}, element('bdi', {}, name), `: ${parts.join(', ')}.${end}`)
  if (refused.length === 0) return [summary]
  const items = refused.map(({ line, id, message }) =>
    element('li', {}, `Line ${line}${id === undefined ? '' : `, plant ${id}`}: ${message}`),
  )
  const list = element('ul', { class: 'refused', tabindex: 0 }, ...items)
  const more = refusedInAll - refused.length
  if (more === 0) return [summary, list]
  return [summary, list, element('p', { class: 'note' }, `And ${more} more.`)]
}

/** Imports a file that somebody drops anywhere on the page. */
export function acceptDrops(signal: AbortSignal, onFile: (file: File) => void): void {
  addEventListener('dragover', (event) => event.preventDefault(), { signal })
  addEventListener(
    'drop',
    (event) => {
      event.preventDefault()
      const [file] = event.dataTransfer?.files ?? []
      if (file !== undefined) onFile(file)
    },
    { signal },
  )
}
