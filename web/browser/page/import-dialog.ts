import type { OnConflict } from '../../../client/index.ts'
import type { ImportReport } from '../../../src/contract/shapes.ts'
import { openDialog } from '../dom/dialog.ts'
import { element, fill } from '../dom/element.ts'
import { buildChoice, buildField } from '../dom/field.ts'
import { buildButton, buildButtons } from '../dom/form.ts'
import { checkFile, countExisting, type FileCheck } from './file-check.ts'
import { uploadPlants } from './files.ts'
import { format, toPlants } from './messages.ts'
import type { DialogParts } from './plant-dialogs.ts'
import { isTokenRefused, toSentence } from './session.ts'

const rules: Record<OnConflict, string> = {
  fail: 'Keep the stored plant and list it here',
  skip: 'Keep the stored plant',
  replace: 'Replace the stored plant',
}

/** What becomes of the plants that the store has already. */
const effects: Record<OnConflict, string> = {
  fail: 'The stored plants stay as they are, and are listed here.',
  skip: 'The stored plants stay as they are.',
  replace: 'The stored plants are replaced.',
}

/** The most refused lines that a check lists. */
const maxFaults = 20

/** Opens the dialog that checks a file, and imports it on demand. Resolves when it is closed. */
export async function importPlants(parts: DialogParts, dropped?: File): Promise<void> {
  const life = new AbortController()
  const { signal } = life
  let chosen: { readonly file: File; readonly check: FileCheck } | undefined
  let choices = 0
  const rule = buildField('If an id already exists', buildChoice(...Object.entries(rules)))
  const onConflict = () => rule.control.value as OnConflict
  rule.control.addEventListener('change', () => fill(effect, effects[onConflict()]))
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
  const preview = element('div', { role: 'status' })
  const effect = element('span', effects.fail)
  const progress = element('progress', { max: 1, value: 0, 'aria-label': 'Sent', hidden: true })
  const outcome = element('div', { role: 'status' })
  const start = buildButton('Start import', send, { class: 'primary', disabled: true })
  const close = buildButton('Close', () => dialog.close())

  /** Checks a file. Nothing is stored before somebody presses the button. */
  async function choose(next: File | undefined): Promise<void> {
    if (next === undefined || start.ariaBusy === 'true') return
    const choice = ++choices
    chosen = undefined
    start.disabled = true
    fill(outcome)
    fill(preview)
    file.refuse(undefined)
    try {
      const check = await checkFile(next)
      if ('fault' in check) return choice === choices ? file.refuse(check.fault) : undefined
      const existing = await countExisting(parts.session().client, check.ids, signal)
      if (choice !== choices || signal.aborted) return
      chosen = { file: next, check }
      start.disabled = false
      fill(preview, ...describeCheck(next, check, existing, effect))
    } catch (error) {
      if (!signal.aborted) refuse(error)
    }
  }

  async function send(): Promise<void> {
    if (chosen === undefined) return
    const { file: sent, check } = chosen
    const onProgress = (share: number) => {
      progress.value = share
      const text = share < 1 ? `${Math.floor(share * 100)} % sent` : 'All sent: storing the rest …'
      fill(outcome, text)
    }
    onProgress(0)
    progress.hidden = false
    try {
      const { format } = check
      const upload = { file: sent, format, onConflict: onConflict(), onProgress, signal }
      fill(outcome, ...describeReport(sent.name, await uploadPlants(parts.session(), upload)))
      fill(preview)
      start.disabled = true
    } catch (error) {
      fill(outcome)
      refuse(error)
    } finally {
      progress.hidden = true
    }
  }

  function refuse(error: unknown): void {
    file.refuse(toSentence(error))
    if (isTokenRefused(error)) parts.onTokenRefused(error)
  }

  const content = [rule.element, file.element, preview, progress, outcome]
  const dialog = openDialog('Import', [
    element('div', { class: 'stack' }, ...content, buildButtons(start, close)),
  ])
  dialog.element.addEventListener('drop', (event) => {
    event.preventDefault()
    event.stopPropagation()
    void choose(event.dataTransfer?.files[0])
  })
  void choose(dropped)
  await dialog.closed
  life.abort()
}

/** What the import will do. */
function describeCheck(
  { name, size }: File,
  { kind, isWhole, ids, faults }: FileCheck,
  existing: { readonly count: number; readonly isExact: boolean },
  effect: HTMLElement,
): HTMLElement[] {
  const lines = ids.length + faults.length
  const checked = isWhole
    ? 'The whole file was checked'
    : `The first ${format(lines)} lines were checked`
  const sentences = [
    `${kind}, ${format(Math.ceil(size / 1024))} KB. ${checked}, and nothing is stored yet: `,
    `${toPlants(ids.length)} can be imported`,
    faults.length > 0 ? `, and ${toLines(faults.length)} will be refused.` : '.',
    isWhole ? '' : ' The rest is checked while it is imported.',
  ]
  const { count, isExact } = existing
  const found = isExact ? format(count) : `At least ${format(count)}`
  return [
    element('p', element('strong', element('bdi', name)), ': ', ...sentences),
    count === 0
      ? element('p', 'None of these ids was found in the store. ', isExact ? '' : effect)
      : element('p', `${found} of these ids exist already. `, effect),
    ...buildList(faults.slice(0, maxFaults).map(toLine)),
  ]
}

function toLines(count: number): string {
  return count === 1 ? '1 line' : `${format(count)} lines`
}

function toLine({ line, id, message }: { line: number; id?: bigint; message: string }): string {
  return `Line ${format(line)}${id === undefined ? '' : `, plant ${id}`}: ${message}`
}

function buildList(items: readonly string[]): HTMLElement[] {
  if (items.length === 0) return []
  const listed = items.map((item) => element('li', item))
  return [element('ul', { class: 'refused', tabindex: 0 }, ...listed)]
}

function describeReport(name: string, report: ImportReport): HTMLElement[] {
  const { stored, alreadyThere, replaced, skipped, refused, refusedInAll, endedAtLine } = report
  const parts = Object.entries({
    stored,
    'already there': alreadyThere,
    replaced,
    skipped,
    refused: refusedInAll,
  })
    .filter(([name, count]) => count > 0 || name === 'stored')
    .map(([name, count]) => `${format(count)} ${name}`)
  const end =
    endedAtLine === undefined
      ? ''
      : ` The import ended at line ${format(endedAtLine)}, because too many lines were refused.`
  const more = refusedInAll - refused.length
  return [
    element('p', element('bdi', name), `: ${parts.join(', ')}.${end}`),
    ...buildList(refused.map(toLine)),
    ...(more > 0 ? [element('p', { class: 'note' }, `And ${format(more)} more.`)] : []),
  ]
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
