import type { Format } from '../contract/formats.ts'
import type { Store } from '../store/store.ts'
import type { Answer, Call, Handlers } from './calls.ts'
import type { Imports } from './imports.ts'
import { openExport } from './plant-list.ts'

type Export = 'exportPlantsAsNdjson' | 'exportPlantsAsCsv'
type Import = 'importPlantsAsNdjson' | 'importPlantsAsCsv'

/** The handlers of exports and imports. */
export function buildFileHandlers(store: Store, imports: Imports): Pick<Handlers, Export | Import> {
  async function exportPlants(
    { parameters, tokenId }: Call<Export>,
    format: Format,
  ): Promise<Answer<Export>> {
    const { after, tag, exportLimit: limit } = parameters
    const headers = {
      'Content-Disposition': `attachment; filename="plants.${format}"`,
      Vary: 'Accept-Encoding',
    }
    const body = await openExport(store, tokenId, { format, after, tag, limit })
    return { status: 200, headers, body }
  }

  async function importPlants(
    { parameters, body, tokenId }: Call<Import>,
    format: Format,
  ): Promise<Answer<Import>> {
    const rule = parameters['on-conflict'] ?? 'fail'
    const report = await imports.run(body, { format, rule, tokenId })
    return { status: 200, headers: {}, body: report }
  }

  return {
    exportPlantsAsNdjson: (call) => exportPlants(call, 'ndjson'),
    exportPlantsAsCsv: (call) => exportPlants(call, 'csv'),
    importPlantsAsNdjson: (call) => importPlants(call, 'ndjson'),
    importPlantsAsCsv: (call) => importPlants(call, 'csv'),
  }
}
