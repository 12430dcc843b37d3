/** An array of integers as PostgreSQL reads it. The driver could write one only after it asked the server for all of its types. */
export function toIntegerArray(values: readonly (bigint | number)[]): string {
  return `{${values.join(',')}}`
}

/** An array of texts as PostgreSQL reads it. */
export function toTextArray(values: readonly (string | null)[]): string {
  return `{${values.map(toElement).join(',')}}`
}

function toElement(value: string | null): string {
  return value === null ? 'NULL' : `"${value.replaceAll(/["\\]/g, '\\$&')}"`
}
