import { limits } from '../../../src/contract/limits.ts'
import { int64Range, isStorable, toPathId } from '../../../src/contract/values.ts'
import { element } from '../dom/element.ts'
import { buildField, buildTextControl, type Field, keepText } from '../dom/field.ts'
import type { Plant } from './rows.ts'

const mostTextPx = 160

/** The fields of a plant. What was typed into them stays until the dialog is closed. */
export interface PlantFields {
  readonly elements: readonly HTMLElement[]
  readonly first: HTMLElement
  /** Puts an id into its empty field, selected, so that typing replaces it. */
  propose(id: bigint): void
  /** The plant as typed, or undefined: then the fields say what is wrong. */
  read(): Plant | undefined
  /** Shows a sentence beside the field that it is about. Returns false if it is about none. */
  refuse(sentence: string): boolean
}

/** Builds the fields, empty or with a plant, whose id then stays. */
export function buildPlantFields(plant: Plant | undefined): PlantFields {
  const id = buildField(
    'Id',
    element('input', {
      inputmode: 'text',
      autocomplete: 'off',
      spellcheck: 'false',
      value: plant === undefined ? '' : String(plant.id),
      readonly: plant !== undefined,
    }),
  )
  const name = buildField('Name', buildTextControl(mostTextPx))
  const empty = element('input', { type: 'checkbox' })
  const tag = buildField(
    'Tag',
    buildTextControl(mostTextPx),
    element('label', { class: 'check' }, empty, 'Save it empty (not the same as none)'),
  )
  const syncEmpty = () => {
    empty.disabled = tag.control.value !== ''
  }
  tag.control.addEventListener('input', syncEmpty)
  let isTouched = false
  id.control.addEventListener('input', () => {
    isTouched = true
  })
  const readName = keepText(name.control, plant?.name ?? '')
  const readTag = keepText(tag.control, plant?.tag ?? '')
  empty.checked = plant?.tag === ''

  return {
    elements: [id.element, name.element, tag.element],
    first: plant === undefined ? id.control : name.control,
    propose(proposed) {
      if (isTouched) return
      id.control.value = String(proposed)
      if (document.activeElement === id.control) id.control.select()
    },
    read() {
      const value = toPathId(id.control.value)
      const texts = { name: readName(), tag: readTag() }
      id.refuse(findIdFault(id.control.value))
      name.refuse(findTextFault('name', texts.name))
      tag.refuse(findTextFault('tag', texts.tag))
      const refused = [id, name, tag].find(({ control }) => control.ariaInvalid === 'true')
      refused?.control.focus()
      if (refused !== undefined || value === undefined) return undefined
      const isTagged = texts.tag !== '' || empty.checked
      const read = { id: value, name: texts.name, ...(isTagged && { tag: texts.tag }) }
      if (isTooLarge(read)) {
        name.refuse(
          `This is too long: a plant may have at most ${limits.bodyBytes / 1024 ** 2} MiB of text.`,
        )
        name.control.focus()
        return undefined
      }
      return read
    },
    refuse(sentence) {
      const about = findField(sentence, { id, name, tag })
      about?.refuse(sentence)
      about?.control.focus()
      return about !== undefined
    },
  }
}

const isNumberLike = /^-?\d+$/
const hasLeadingZero = /^-0|^0./

/** The mistake in an id, if one shows without asking the service. */
export function findIdFault(text: string): string | undefined {
  if (toPathId(text) !== undefined) return undefined
  if (!isNumberLike.test(text)) return 'The id must be an integer: digits only, such as 42.'
  return hasLeadingZero.test(text)
    ? 'The id must be an integer without leading zeros, such as 42.'
    : `The id must be an integer ${int64Range}.`
}

/** The mistake in a name or a tag, which may be any text that every engine can store. */
export function findTextFault(kind: string, text: string): string | undefined {
  if (isStorable(text)) return undefined
  return `The ${kind} must not contain NUL characters or halves of characters.`
}

function isTooLarge(plant: Plant): boolean {
  const text = JSON.stringify({ ...plant, id: String(plant.id) })
  return new TextEncoder().encode(text).length > limits.bodyBytes
}

function findField(
  sentence: string,
  fields: Readonly<Record<'id' | 'name' | 'tag', Field>>,
): Field | undefined {
  const [, member = ''] = /member "(id|name|tag)"/.exec(sentence) ?? []
  if (member !== '') return fields[member as 'id' | 'name' | 'tag']
  return /\bid\b/.test(sentence) ? fields.id : undefined
}
