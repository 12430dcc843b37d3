import type { PlantState, PlantStore } from '../../../client/index.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import { buildButtons, type Dialog, openDialog, whileBusy } from '../dom/dialog.ts'
import { element, fill } from '../dom/element.ts'
import type { Change } from './changes.ts'
import { buildPlantFields, type PlantFields } from './fields.ts'
import type { Plant } from './rows.ts'
import { isNumber, isTokenRefused, toSentence } from './sentences.ts'

export interface DialogParts {
  readonly client: () => PlantStore
  /** Announces an own change before it is sent: the stream may tell of it before its answer. */
  expect(change: Change): void
  showHistory(id: bigint): void
  /** The token was refused: asks for another one over the dialog, which stays as it is. */
  onTokenRefused(error: unknown): void
}

/** A dialog with a form. */
interface FormDialog {
  /** Where the dialog says what is wrong, other than beside a field. */
  readonly problem: HTMLElement
  /** Runs a task and shows its failure. Closes the dialog if the form is done then. */
  attempt(task: () => Promise<void>): Promise<void>
}

/** An own change of a plant, and what it takes to undo it. */
export interface Done {
  readonly id: bigint
  /** The plant before the change, and as it is now; undefined if there is none. */
  readonly before: Plant | undefined
  readonly now: Plant | undefined
  /** Names the state that the plant is in now. */
  readonly etag?: string
}

/** Asks for a new plant and stores it. Resolves to undefined if nobody wanted it. */
export async function addPlant(parts: DialogParts): Promise<Done | undefined> {
  const fields = buildPlantFields(undefined)
  const closing = new AbortController()
  let done: Done | undefined
  const send = async () => {
    const plant = fields.read()
    if (plant === undefined) return
    parts.expect({ type: 'plant.created', plant })
    const { etag } = await parts.client().create(plant)
    done = { id: plant.id, before: undefined, now: plant, etag }
  }
  // Without an answer, nothing is proposed.
  findFreeId(parts.client(), closing.signal).then(fields.propose, () => {})
  await openForm({ title: 'Add plant', fields, parts, send, isDone: () => done !== undefined })
  closing.abort()
  return done
}

/** The id after the highest; if that is the highest of all, the next one below that is free. */
async function findFreeId(client: PlantStore, signal: AbortSignal): Promise<bigint> {
  const { value: last } = await client.list({ order: 'desc', pageSize: 1, signal }).next()
  if (last === undefined) return 1n
  let free = last.id + 1n
  if (free <= int64Bounds.maximum) return free
  for await (const { id } of client.list({ order: 'desc', signal })) {
    if (id < free - 1n) break
    free = id
  }
  return free - 1n
}

/** Changes a plant. Resolves to undefined if nobody did. */
export async function editPlant(parts: DialogParts, found: PlantState): Promise<Done | undefined> {
  const { id } = found
  const fields = buildPlantFields(found)
  let before: PlantState | undefined = found
  let done: Done | undefined

  async function save(form: FormDialog, mine: Plant): Promise<void> {
    try {
      const { etag } = await replace(parts, mine, before?.etag)
      done = { id, before, now: mine, etag }
    } catch (error) {
      if (!isNumber(error, 41200)) throw error
      const theirs = await parts.client().get(id)
      before = theirs
      const choose = (chosen: 'mine' | 'theirs') =>
        form.attempt(async () => {
          if (chosen === 'mine') await save(form, fields.read() ?? mine)
          else done = { id, before: theirs, now: theirs }
        })
      fill(form.problem, ...buildVersions({ mine, theirs, choose }))
    }
  }

  const send = async (form: FormDialog) => {
    const mine = fields.read()
    if (mine !== undefined) await save(form, mine)
  }
  const click = () => parts.showHistory(id)
  const history = element('button', { type: 'button', class: 'aside', click }, 'What happened')
  const isDone = () => done !== undefined
  await openForm({ title: 'Edit plant', fields, parts, send, isDone, aside: history })
  return done
}

/** Stores a plant in place of the state that the tag names, or where there is none. */
function replace(parts: DialogParts, plant: Plant, etag: string | undefined) {
  const condition = etag === undefined ? { ifNoneMatch: '*' } : { ifMatch: etag }
  const type = etag === undefined ? 'plant.created' : 'plant.replaced'
  parts.expect({ type, plant })
  return parts.client().replace(plant.id, plant, condition)
}

/** Undoes an own change. Rejects if somebody has changed the plant since. */
export async function undo(parts: DialogParts, { id, before, now, etag }: Done): Promise<void> {
  if (before !== undefined) await replace(parts, before, etag)
  else if (now !== undefined && etag !== undefined) {
    parts.expect({ type: 'plant.deleted', plant: now })
    await parts.client().delete(id, { ifMatch: etag })
  }
}

/** Asks before it deletes a plant. Resolves to undefined if nobody did. */
export async function deletePlant(
  parts: DialogParts,
  found: PlantState,
): Promise<Done | undefined> {
  let plant = found
  let isGone = false
  const shown = element('p', { class: 'summary' })
  const describe = () =>
    fill(
      shown,
      element('span', { class: 'mono' }, String(plant.id)),
      element('bdi', {}, plant.name.slice(0, 200).toWellFormed()),
      plant.tag === undefined
        ? undefined
        : element('bdi', { class: 'chip' }, plant.tag.slice(0, 100)),
    )
  describe()
  const fields = { elements: [shown], first: undefined, refuse: () => false }
  const send = async ({ problem }: FormDialog) => {
    try {
      parts.expect({ type: 'plant.deleted', plant })
      await parts.client().delete(plant.id, { ifMatch: plant.etag })
      isGone = true
    } catch (error) {
      if (!isNumber(error, 41200)) throw error
      const now = await parts.client().get(plant.id)
      isGone = now === undefined
      plant = now ?? plant
      describe()
      if (!isGone) {
        fill(
          problem,
          'Somebody has changed this plant in the meantime. It is shown as it is now. ' +
            'Press “Delete” again to delete it anyway.',
        )
      }
    }
  }
  await openForm({ title: 'Delete plant', fields, parts, send, isDone: () => isGone })
  return isGone ? { id: plant.id, before: plant, now: undefined } : undefined
}

interface FormParts {
  readonly title: string
  readonly fields: Pick<PlantFields, 'elements' | 'refuse'> & { first: HTMLElement | undefined }
  readonly parts: DialogParts
  send(form: FormDialog): Promise<void>
  isDone(): boolean
  /** Another button. */
  readonly aside?: HTMLButtonElement
}

/** Opens a dialog with a form. It shows a refusal and keeps the typed text. */
async function openForm(wanted: FormParts): Promise<void> {
  const { title, fields, parts, send, isDone, aside } = wanted
  const problem = element('div', { class: 'refusal', role: 'alert' })
  const submit =
    title === 'Delete plant'
      ? element('button', { type: 'submit', class: 'danger' }, 'Delete')
      : element('button', { type: 'submit', class: 'primary' }, 'Save')
  const cancel = element('button', { type: 'button', click: () => dialog.close() }, 'Cancel')

  async function attempt(task: () => Promise<void>): Promise<void> {
    fill(problem)
    try {
      await task()
    } catch (error) {
      const sentence = toSentence(error)
      if (!fields.refuse(sentence)) fill(problem, sentence)
      if (isTokenRefused(error)) parts.onTokenRefused(error)
    }
    if (isDone()) dialog.close()
  }

  const form = element(
    'form',
    {
      novalidate: true,
      submit: (event: SubmitEvent) => {
        event.preventDefault()
        void whileBusy(submit, () => attempt(() => send({ problem, attempt })))
      },
    },
    ...fields.elements,
    problem,
    buildButtons(submit, cancel, ...(aside === undefined ? [] : [aside])),
  )
  const dialog = openDialog(title, [form], fields.first ?? cancel)
  keepTyped(dialog, form, problem)
  await dialog.closed
}

/** Keeps Escape from throwing away what was typed: the first one asks. */
function keepTyped(dialog: Dialog, form: HTMLFormElement, problem: HTMLElement): void {
  let isTyped = false
  form.addEventListener('input', () => {
    isTyped = true
  })
  dialog.element.addEventListener('cancel', (event) => {
    if (!isTyped) return
    event.preventDefault()
    const discard = element('button', { type: 'button', click: dialog.close }, 'Discard')
    fill(problem, 'What you typed is not saved. ', discard)
    discard.focus()
  })
}

interface Conflict {
  readonly mine: Plant
  /** As it is stored now; undefined if somebody deleted it. */
  readonly theirs: Plant | undefined
  choose(chosen: 'mine' | 'theirs'): Promise<void>
}

/** Shows both versions of a plant side by side, with a button for each. */
function buildVersions({ mine, theirs, choose }: Conflict): readonly HTMLElement[] {
  const useMine = element('button', { type: 'button' }, 'Overwrite with mine')
  const useTheirs = element('button', { type: 'button' }, 'Use theirs')
  useMine.addEventListener('click', () => void whileBusy(useMine, () => choose('mine')))
  useTheirs.addEventListener('click', () => void whileBusy(useTheirs, () => choose('theirs')))
  return [
    element(
      'p',
      {},
      theirs === undefined
        ? 'Somebody has deleted this plant in the meantime. Nothing was saved yet.'
        : 'Somebody has changed this plant in the meantime. Nothing was saved yet.',
    ),
    element(
      'div',
      { class: 'versions' },
      buildVersion('Yours', mine, useMine),
      buildVersion('Theirs', theirs, useTheirs),
    ),
  ]
}

function buildVersion(
  title: string,
  plant: Plant | undefined,
  button: HTMLButtonElement,
): HTMLElement {
  const content =
    plant === undefined
      ? [element('p', { class: 'none' }, 'deleted')]
      : [
          element('p', {}, element('bdi', {}, plant.name.slice(0, 500).toWellFormed())),
          plant.tag === undefined
            ? element('p', { class: 'none' }, 'no tag')
            : element(
                'p',
                {},
                element('bdi', { class: 'chip' }, plant.tag.slice(0, 200) || '“” empty'),
              ),
        ]
  return element('section', {}, element('h3', {}, title), ...content, button)
}
