import type { PlantState, PlantStore } from '../../../client/index.ts'
import { buildButtons, openDialog, whileBusy } from '../dom/dialog.ts'
import { element, fill } from '../dom/element.ts'
import type { Change } from './changes.ts'
import { buildVersions } from './conflict.ts'
import { buildPlantFields, type PlantFields } from './fields.ts'
import type { Plant } from './rows.ts'
import { isNumber, isTokenRefused, toSentence } from './sentences.ts'

export interface DialogParts {
  readonly client: () => PlantStore
  /** Announces an own change before it is sent: the stream may tell of it before its answer. */
  expect(change: Change): void
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

/** Asks for a new plant and stores it. Resolves to it, or to undefined if nobody wanted it. */
export async function addPlant(parts: DialogParts): Promise<Plant | undefined> {
  const fields = buildPlantFields(undefined)
  let stored: Plant | undefined
  const send = async () => {
    const plant = fields.read()
    if (plant === undefined) return
    parts.expect({ type: 'plant.created', plant })
    await parts.client().create(plant)
    stored = plant
  }
  await openForm({ title: 'Add plant', fields, parts, send, isDone: () => stored !== undefined })
  return stored
}

/** Changes a plant. Resolves to it as it is stored then, or to undefined if nobody changed it. */
export async function editPlant(
  parts: DialogParts,
  before: PlantState,
): Promise<Plant | undefined> {
  const fields = buildPlantFields(before)
  let stored: Plant | undefined
  let isDone = false
  let ifMatch: string | undefined = before.etag

  function finish(plant: Plant | undefined): void {
    stored = plant
    isDone = true
  }

  async function save(form: FormDialog, mine: Plant): Promise<void> {
    try {
      const conditions = ifMatch === undefined ? { ifNoneMatch: '*' as const } : { ifMatch }
      const type = ifMatch === undefined ? 'plant.created' : 'plant.replaced'
      parts.expect({ type, plant: mine })
      await parts.client().replace(mine.id, mine, conditions)
      finish(mine)
    } catch (error) {
      if (!isNumber(error, 41200)) throw error
      const theirs = await parts.client().get(before.id)
      ifMatch = theirs?.etag
      const choose = (chosen: 'mine' | 'theirs') =>
        form.attempt(async () => {
          if (chosen === 'mine') await save(form, fields.read() ?? mine)
          else finish(theirs)
        })
      fill(form.problem, ...buildVersions({ sentence: toSentence(error), mine, theirs, choose }))
    }
  }

  const send = async (form: FormDialog) => {
    const mine = fields.read()
    if (mine !== undefined) await save(form, mine)
  }
  await openForm({ title: 'Edit plant', fields, parts, send, isDone: () => isDone })
  return stored
}

/** Asks before it deletes a plant. Resolves to whether it is gone. */
export async function deletePlant(parts: DialogParts, found: PlantState): Promise<boolean> {
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
  const send = async () => {
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
      if (!isGone) throw error
    }
  }
  await openForm({ title: 'Delete plant', fields, parts, send, isDone: () => isGone })
  return isGone
}

interface FormParts {
  readonly title: string
  readonly fields: Pick<PlantFields, 'elements' | 'refuse'> & { first: HTMLElement | undefined }
  readonly parts: DialogParts
  send(form: FormDialog): Promise<void>
  isDone(): boolean
}

/** Opens a dialog with a form. It shows a refusal and keeps the typed text. */
async function openForm({ title, fields, parts, send, isDone }: FormParts): Promise<void> {
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
    buildButtons(submit, cancel),
  )
  const dialog = openDialog(title, [form], fields.first ?? cancel)
  await dialog.closed
}
