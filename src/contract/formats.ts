/** The forms in which plants leave and arrive by the file: one plant a line. */
export const formats = {
  ndjson: {
    mediaType: 'application/x-ndjson',
    contentType: 'application/x-ndjson; charset=utf-8',
    description: 'Every plant, one JSON object a line, in ascending order of the ids.',
    example: '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}\n',
  },
  csv: {
    mediaType: 'text/csv',
    contentType: 'text/csv; charset=utf-8; header=present',
    description:
      'Every plant, one row a plant under a header row, in ascending order of the ids. An absent tag is nothing between the commas, an empty one is `""`.',
    example: 'id,name,tag\n1,Monstera deliciosa,indoor\n',
  },
} as const

export type Format = keyof typeof formats

export const formatNames = Object.keys(formats) as Format[]

/** What every body in JSON is sent as. */
export const jsonContentType = 'application/json; charset=utf-8'
