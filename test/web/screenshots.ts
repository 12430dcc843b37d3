/** Makes the pictures of the README from the real page: `npm run screenshots`. */
import { join } from 'node:path'
import { it } from 'node:test'
import type { BrowserContextOptions } from 'playwright-core'
import { startService } from '../support/service.ts'
import { visit, visitPlants } from './visit.ts'

const folder = join(import.meta.dirname, '..', '..', 'docs', 'screenshots')
const plants: [name: string, tag?: string][] = [
  ['Monstera deliciosa', 'indoor'],
  ['Ficus lyrata', 'indoor'],
  ['Epipremnum aureum', 'climber'],
  ['Olea europaea', 'outdoor'],
  ['Pilea peperomioides'],
  ['Aloe vera', 'succulent'],
  ['Lavandula angustifolia', 'outdoor'],
  ['Calathea orbifolia', 'indoor'],
  ['Salvia rosmarinus', 'kitchen'],
  ['Hedera helix', 'climber'],
  ['Echeveria elegans', 'succulent'],
  ['Camellia sinensis', 'outdoor'],
]
const wide = { width: 1000, height: 560 }
/** Shows both columns of an operation. */
const wider = { width: 1200, height: 672 }

const views: Record<string, BrowserContextOptions> = {
  light: { viewport: wide },
  dark: { viewport: wide, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 560 }, hasTouch: true },
}

it('takes the pictures', async () => {
  const service = await startService('sqlite::memory:')
  for (const [index, [name, tag]] of plants.entries()) {
    await service.create(JSON.stringify({ id: index + 1, name, ...(tag && { tag }) }))
  }
  for (const [name, options] of Object.entries(views)) {
    const { page } = await visitPlants(service.url, { ...options, reducedMotion: 'reduce' })
    await page.getByText('Live', { exact: true }).waitFor({ state: 'attached' })
    if (name === 'dark') {
      await page.getByRole('button', { name: 'Edit plant 3', exact: true }).click()
      await page.getByRole('dialog').waitFor()
    } else {
      const newName = name === 'light' ? 'Epipremnum pinnatum' : 'Golden pothos'
      await service.put(3, { name: newName, tag: 'climber' })
      await page.locator('tr[data-mark="changed"]').waitFor()
    }
    await page.screenshot({ path: join(folder, `${name}.png`) })
  }
  const { page } = await visit(`${service.url}/docs#createPlant`, { viewport: wider })
  await page.locator('#createPlant').waitFor()
  await page.screenshot({ path: join(folder, 'reference.png') })
})
