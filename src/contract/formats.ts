/** The file formats of plants, with one plant on each line. */
export const formats = {
  ndjson: {
    mediaType: 'application/x-ndjson',
    contentType: 'application/x-ndjson; charset=utf-8',
    description: 'Plants as one JSON object per line.',
    example: '{"id":1,"name":"Monstera deliciosa","tag":"indoor"}\n',
  },
  csv: {
    mediaType: 'text/csv',
    contentType: 'text/csv; charset=utf-8; header=present',
    description:
      'Plants as one row each, after a header row that names the columns. An absent tag is an ' +
      'empty field; an empty tag is `""`. Files in UTF-8 are read with commas, semicolons or tabs ' +
      'between the fields, with and without a byte order mark and a line such as `sep=;`.',
    example: 'id,name,tag\n1,Monstera deliciosa,indoor\n',
  },
} as const

export type Format = keyof typeof formats

export const formatNames = Object.keys(formats) as Format[]

/** The delimiters of CSV, by the names that they have in requests. */
export const delimiters = { comma: ',', semicolon: ';', tab: '\t' } as const

export const delimiterNames = Object.keys(delimiters) as (keyof typeof delimiters)[]

/** The `Content-Type` of every body in JSON. */
export const jsonContentType = 'application/json; charset=utf-8'

/** The media type of an endless stream of events. */
export const eventStreamType = 'text/event-stream'
