/** The lines of a table, with columns as wide as their longest cell. */
export function toTable(rows: readonly (readonly string[])[]): string[] {
  const [titles = []] = rows
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
