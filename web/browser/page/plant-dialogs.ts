import type { PlantState, PlantStore, StoredPlant } from '../../../client/index.ts'
import { limits } from '../../../src/contract/limits.ts'
import { int64Bounds } from '../../../src/contract/schema.ts'
import { toPathId } from '../../../src/contract/values.ts'
import {
  buildButton,
  buildButtons,
  buildField,
  buildForm,
  buildTextField,
  type Dialog,
  element,
  fill,
  openDialog,
  whileBusy,
} from '../dom.ts'
import { showName, showTag } from './list.ts'
import { isNumber, isTokenRefused, type Session, showFailure, toSentence } from './token-session.ts'

/** The id of the list of tags that are offered. */
export const tagsId = 'tags'

export interface DialogParts {
  session(): Session
  /** The token was refused: asks for another one over the dialog, which stays as it is. */
  onTokenRefused(error: unknown): void
}

/** An own change of a plant, and what it takes to undo it. */
export interface Done {
  readonly id: bigint
  /** The plant before the change and now. Both are undefined if somebody else had deleted it. */
  readonly before: StoredPlant | undefined
  readonly now: StoredPlant | undefined
  /** Names the state that the plant is in now. */
  readonly etag?: string
}

/** A dialog with a form. */
interface FormDialog {
  /** Where the dialog says what is wrong, other than beside a field. */
  readonly problem: HTMLElement
  close(done: Done): void
}

/** Asks for a new plant and stores it. Resolves to undefined if nobody wanted it. */
export async function addPlant(parts: DialogParts): Promise<Done | undefined> {
  const fields = buildPlantFields(undefined)
  const closing = new AbortController()
  const send = async () => {
    const plant = fields.read()
    if (plant === undefined) return undefined
    try {
      const { etag } = await parts.session().client.create(plant)
      return { id: plant.id, before: undefined, now: plant, etag }
    } catch (error) {
      if (!isNumber(error, 40900)) throw error
      fields.refuseId(toSentence(error))
      return undefined
    }
  }
  // Without an answer, nothing is proposed.
  findFreeId(parts.session().client, closing.signal).then(fields.propose, () => {})
  const done = await openForm('Add plant', parts, send, fields.elements, fields.first)
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

  async function send(form: FormDialog): Promise<Done | undefined> {
    const mine = fields.read()
    if (mine === undefined) return undefined
    try {
      const { etag } = await replace(parts, mine, before?.etag)
      return { id, before, now: mine, etag }
    } catch (error) {
      if (!isNumber(error, 41200)) throw error
      const theirs = await parts.session().client.get(id)
      before = theirs
      const useTheirs = () => form.close({ id, before: theirs, now: theirs })
      fill(form.problem, ...buildVersions(mine, theirs, useTheirs))
      return undefined
    }
  }

  return openForm('Edit plant', parts, send, fields.elements, fields.first)
}

/** Stores a plant in place of the state that the tag names, or where there is none. */
function replace(parts: DialogParts, plant: StoredPlant, etag: string | undefined) {
  const condition = etag === undefined ? { ifNoneMatch: '*' } : { ifMatch: etag }
  return parts.session().client.replace(plant.id, plant, condition)
}

/** Undoes an own change. Rejects if somebody has changed the plant since. */
export async function undo(parts: DialogParts, { id, before, now, etag }: Done): Promise<void> {
  if (before !== undefined) await replace(parts, before, etag)
  else if (now !== undefined && etag !== undefined) {
    await parts.session().client.delete(id, { ifMatch: etag })
  }
}

/** Asks before it deletes a plant. Resolves to undefined if nobody did. */
export async function deletePlant(
  parts: DialogParts,
  found: PlantState,
): Promise<Done | undefined> {
  const { id } = found
  let plant = found
  const shown = element('p', { class: 'summary' })
  const show = () => {
    const digits = element('span', { class: 'mono' }, String(id))
    fill(shown, digits, showName(plant.name), showTag(plant.tag))
  }
  show()
  const send = async ({ problem }: FormDialog) => {
    let isOwn = false
    try {
      isOwn = await parts.session().client.delete(id, { ifMatch: plant.etag })
    } catch (error) {
      if (!isNumber(error, 41200)) throw error
      const now = await parts.session().client.get(id)
      if (now !== undefined) {
        plant = now
        show()
        fill(
          problem,
          'Somebody has changed this plant in the meantime. It is shown as it is now. ' +
            'Press “Delete” again to delete it anyway.',
        )
        return undefined
      }
    }
    return { id, before: isOwn ? plant : undefined, now: undefined }
  }
  return openForm('Delete plant', parts, send, [shown])
}

/**
 * Opens a dialog with a form. It shows a refusal and keeps the typed text. The focus goes to
 * `first`, or else to "Cancel".
 */
async function openForm(
  title: string,
  parts: DialogParts,
  send: (form: FormDialog) => Promise<Done | undefined>,
  elements: readonly HTMLElement[],
  first?: HTMLElement,
): Promise<Done | undefined> {
  let done: Done | undefined
  let running: Promise<void> | undefined
  const problem = element('div', { class: 'refusal', role: 'alert' })
  const [label, kind] = title === 'Delete plant' ? ['Delete', 'danger'] : ['Save', 'primary']
  const submit = element('button', { type: 'submit', class: kind }, label)
  const cancel = buildButton('Cancel', () => dialog.close())

  function close(made: Done): void {
    done = made
    dialog.close()
  }

  async function attempt(): Promise<void> {
    fill(problem)
    try {
      const made = await send({ problem, close })
      if (made !== undefined) close(made)
    } catch (error) {
      showFailure(problem, error)
      if (isTokenRefused(error)) parts.onTokenRefused(error)
    }
  }

  const run = () => {
    running = attempt()
    return running
  }
  const form = buildForm(
    () => whileBusy(submit, run),
    ...elements,
    problem,
    buildButtons(submit, cancel),
  )
  const dialog = openDialog(title, [form], first ?? cancel)
  keepTyped(dialog, form, problem)
  await dialog.closed
  // What was sent before "Cancel" was pressed may still be stored.
  await running
  return done
}

/** Keeps Escape from discarding what was typed: the first press asks. */
function keepTyped(dialog: Dialog, form: HTMLFormElement, problem: HTMLElement): void {
  let isTyped = false
  form.addEventListener('input', () => {
    isTyped = true
  })
  dialog.element.addEventListener('cancel', (event) => {
    if (!isTyped) return
    event.preventDefault()
    const discard = buildButton('Discard', dialog.close)
    fill(problem, 'What you typed is not saved. ', discard)
    discard.focus()
  })
}

/**
 * Shows both versions of a plant side by side, with a button for each: to send the form again, and
 * to leave the plant as it is stored now. It is undefined if somebody deleted it.
 */
function buildVersions(
  mine: StoredPlant,
  theirs: StoredPlant | undefined,
  useTheirs: () => void,
): readonly HTMLElement[] {
  const verb = theirs === undefined ? 'deleted' : 'changed'
  const text = `Somebody has ${verb} this plant in the meantime. Nothing was saved yet.`
  const versions = [
    buildVersion('Yours', mine, element('button', { type: 'submit' }, 'Overwrite with mine')),
    buildVersion('Theirs', theirs, buildButton('Use theirs', useTheirs)),
  ]
  return [element('p', text), element('div', { class: 'versions' }, ...versions)]
}

function buildVersion(title: string, plant: StoredPlant | undefined, button: HTMLElement) {
  const content = plant === undefined ? ['deleted'] : [showName(plant.name), showTag(plant.tag)]
  return element('section', element('h3', title), ...content, button)
}

/**
 * Builds the fields, empty or with a plant, whose id then stays. What was typed into them stays
 * until the dialog is closed.
 */
function buildPlantFields(plant: StoredPlant | undefined) {
  const input = element('input', {
    value: plant === undefined ? '' : String(plant.id),
    readonly: plant !== undefined,
    input: () => {
      isTouched = true
    },
  })
  let isTouched = false
  const id = buildField('Id', input)
  const name = buildTextField('Name', plant?.name ?? '')
  const note = plant?.tag === '' ? 'The tag is empty. It stays so until you enter one.' : undefined
  const tag = buildTextField('Tag', plant?.tag ?? '', { list: tagsId, note })

  return {
    elements: [id.element, name.element, tag.element],
    first: plant === undefined ? input : name.control,
    /** Puts an id into a field that nobody has touched, selected, so that typing replaces it. */
    propose(proposed: bigint): void {
      if (isTouched) return
      input.value = String(proposed)
      id.refuse(undefined)
      if (document.activeElement === input) input.select()
    },
    /** The plant as typed, or undefined: then the fields say what is wrong. */
    read(): StoredPlant | undefined {
      const value = toPathId(input.value)
      id.refuse(findIdFault(input.value))
      name.refuse(undefined)
      if (value === undefined) {
        input.focus()
        return undefined
      }
      // An empty field is no tag, but an empty tag that is stored stays.
      const isTagged = tag.read() !== '' || plant?.tag === ''
      const read = { id: value, name: name.read(), ...(isTagged && { tag: tag.read() }) }
      if (!isTooLarge(read)) return read
      const maxKiB = limits.bodyBytes / 1024
      name.refuse(`This is too long: a plant may have at most ${maxKiB} KiB of text.`)
      name.control.focus()
      return undefined
    },
    /** Shows what is wrong with the id. */
    refuseId(sentence: string): void {
      id.refuse(sentence)
      input.focus()
    },
  }
}

/** The mistake in an id, if one shows without asking the service. */
export function findIdFault(text: string): string | undefined {
  if (toPathId(text) !== undefined) return undefined
  return 'The id must be an integer of at most 19 digits, such as 42, without zeros in front.'
}

function isTooLarge(plant: StoredPlant): boolean {
  const text = JSON.stringify({ ...plant, id: String(plant.id) })
  return new TextEncoder().encode(text).length > limits.bodyBytes
}
