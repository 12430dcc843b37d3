/** How fast plants come in and out by the commands, beside what the bare engine takes for the same rows. */
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
  const places = {
    SQLite: async (name: string) => `sqlite:${join(folder, `${name}.db`)}`,
    PostgreSQL: (name: string) => lab.newDatabase(`transfer_${name}`),
  }
  const found = []
  for (const [engine, newUrl] of Object.entries(places)) {
    const { progress } = lab
    const transferred = await measureTransfer({ count, rounds, folder, newUrl, progress })
    found.push({ engine, ...transferred })
  }
  const rows = found.flatMap(({ engine, rssMb, ...seconds }) =>
    (['import', 'export'] as const).map((command) => {
      const own = median(seconds[command])
      const bare = median(command === 'import' ? seconds.bareIn : seconds.bareOut)
      return [`${command}, ${engine}`, toText(count / own), (bare / own).toFixed(2), toText(rssMb)]
    }),
  )
  const head = [
    `${count.toLocaleString('en')} plants`,
    'plants/s',
    'of the bare engine',
    'MB, at most',
  ]
  return { title: 'Import and export', text: toTable(head, rows), values: found, targets: [] }
}
