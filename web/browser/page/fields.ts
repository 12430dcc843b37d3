import type { StoredPlant } from '../../../client/index.ts'
import { limits } from '../../../src/contract/limits.ts'
import { toPathId } from '../../../src/contract/values.ts'
import { buildField, buildTextField, element } from '../dom.ts'

/** The id of the list of tags that are offered. */
export const tagsId = 'tags'

const maxKiB = limits.bodyBytes / 1024

/**
 * Builds the fields, empty or with a plant, whose id then stays. What was typed into them stays
 * until the dialog is closed.
 */
export function buildPlantFields(plant: StoredPlant | undefined) {
  const input = element('input', {
    autocomplete: 'off',
    spellcheck: 'false',
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
