import { whileBusy } from '../dom/dialog.ts'
import { element } from '../dom/element.ts'
import type { Plant } from './rows.ts'

interface Conflict {
  readonly mine: Plant
  /** As it is stored now; undefined if somebody deleted it. */
  readonly theirs: Plant | undefined
  choose(chosen: 'mine' | 'theirs'): Promise<void>
}

/** Shows both versions of a plant side by side, with a button for each. */
export function buildVersions({ mine, theirs, choose }: Conflict): readonly HTMLElement[] {
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
