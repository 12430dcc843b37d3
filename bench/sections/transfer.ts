/** Speed of the import and export commands, next to the bare engine. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../figures.ts'
import type { Lab } from '../lab.ts'
import { type Findings, type Section, toTable, toText } from '../section.ts'
import { measureTransfer } from '../transfer.ts'

const plans = { short: { count: 100_000, rounds: 1 }, full: { count: 1_000_000, rounds: 2 } }

export const transfer: Section = { name: 'transfer', measure }

async function measure(lab: Lab): Promise<Findings> {
  const { count, rounds } = plans[lab.form]
  const folder = join(lab.folder, 'transfer')
  mkdirSync(folder)
  const engines = {
    SQLite: async (name: string) => `sqlite:${join(folder, `${name}.db`)}`,
    PostgreSQL: (name: string) => lab.newDatabase(`transfer_${name}`),
  }
  const found = []
  for (const [engine, newUrl] of Object.entries(engines)) {
    const { progress } = lab
    const transferred = await measureTransfer({ count, rounds, folder, newUrl, progress })
    found.push({ engine, ...transferred })
  }
  const rows = found.flatMap(({ engine, rssMb, ...seconds }) =>
    (['import', 'export'] as const).map((command) => {
      const ours = median(seconds[command])
      const bare = median(command === 'import' ? seconds.bareImport : seconds.bareExport)
      const rate = toText(count / ours)
      return [`${command}, ${engine}`, rate, (bare / ours).toFixed(2), toText(rssMb)]
    }),
  )
  const head = [`${count.toLocaleString('en')} plants`, 'plants/s', '/ bare engine', 'peak MB']
  return { title: 'Import and export', text: toTable(head, rows), values: found, targets: [] }
}
