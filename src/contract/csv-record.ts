/**
 * The fields of a record. A field without text is absent; an empty text is written as two quotes.
 */
export type Fields = (string | undefined)[]

/** Splits a record into all or its first fields, unless a quoted one has not ended yet. */
export function parseRecord(
  record: string,
  delimiter: string,
  maxFields?: number,
): Fields | 'open' | 'malformed' {
  if (!record.includes('"')) {
    return record.split(delimiter, maxFields).map((text) => text || undefined)
  }
  const fields: Fields = []
  for (let start = 0; ; ) {
    const isQuoted = record[start] === '"'
    const end = isQuoted
      ? findClosingQuote(record, start + 1) + 1
      : findDelimiter(record, delimiter, start)
    if (isQuoted && end === 0) return 'open'
    const text = record.slice(start, end)
    if (isQuoted) fields.push(text.slice(1, -1).replaceAll('""', '"'))
    else if (text.includes('"')) return 'malformed'
    else fields.push(text || undefined)
    if (end === record.length || fields.length === maxFields) return fields
    if (record[end] !== delimiter) return 'malformed'
    start = end + 1
  }
}

function findDelimiter(record: string, delimiter: string, from: number): number {
  const at = record.indexOf(delimiter, from)
  return at === -1 ? record.length : at
}

function findClosingQuote(record: string, from: number): number {
  let at = record.indexOf('"', from)
  while (at !== -1 && record[at + 1] === '"') at = record.indexOf('"', at + 2)
  return at
}

export function countQuotes(text: string): number {
  let count = 0
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) count++
  return count
}
