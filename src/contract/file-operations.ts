import { type Format, formats } from './formats.ts'
import { ImportReport } from './import-report.ts'
import { json, type Operation } from './operation.ts'

const names = { ndjson: 'NDJSON', csv: 'CSV' } as const

const exportParameters = ['exportLimit', 'after', 'tag'] as const

/** Exports and imports: all plants as one file, and a file of plants as one request. */
export const fileOperations = {
  exportPlantsAsNdjson: { ...describeExport('ndjson'), parameters: exportParameters },
  exportPlantsAsCsv: {
    ...describeExport('csv'),
    parameters: [...exportParameters, 'delimiter', 'spreadsheet'],
  },
  importPlantsAsNdjson: {
    ...describeImport('ndjson'),
    parameters: ['on-conflict'],
    failures: [],
  },
  importPlantsAsCsv: {
    ...describeImport('csv'),
    parameters: ['on-conflict', 'delimiter'],
    // Without a usable header row, no line can be read.
    failures: [40003],
  },
} as const satisfies Record<string, Operation>

function describeExport<const Name extends Format>(format: Name) {
  return {
    method: 'GET',
    path: `/plants.${format}`,
    scope: 'plants:read',
    summary: `Export plants as ${names[format]}`,
    description:
      'Returns every plant, as of one moment, in ascending order of id, as the command ' +
      '`plant-store export` writes them. A response without its end was broken off.',
    successes: {
      200: {
        description: 'The plants.',
        body: formats[format],
        headers: ['Content-Disposition', 'Vary'],
        optionalHeaders: ['Content-Encoding'],
      },
    },
    failures: [],
  } as const
}

function describeImport<const Name extends Format>(format: Name) {
  return {
    method: 'POST',
    path: `/plants.${format}`,
    scope: 'plants:write',
    summary: `Import plants as ${names[format]}`,
    description:
      'Stores the plants of a file of any length, which may be gzipped (`Content-Encoding: ' +
      'gzip`). An import is not one transaction: lines that were read before a failure stay, and ' +
      'the same file sent again finds them there. A line that is refused is listed in the report ' +
      'and does not end the import. At most 4 imports run at a time (50300), each for at most 10 ' +
      'minutes.',
    body: { ...formats[format], format },
    successes: {
      200: { description: 'The whole file was read.', body: json(ImportReport), headers: [] },
    },
  } as const
}
