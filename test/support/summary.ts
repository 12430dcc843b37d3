import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/** Reports, at the end of a run, its ten slowest files, and how many tests were skipped, and why. */
// biome-ignore lint/style/noDefaultExport: Node.js takes the default export for the reporter.
export default async function* summarize(source: AsyncIterable<TestEvent>) {
  const skipped = new Map<string, number>()
  const files: { file: string; seconds: number }[] = []
  for await (const { type, data } of source) {
    if (type === 'test:pass' && data.skip !== undefined) {
      const reason = String(data.skip)
      skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
    }
    if (type === 'test:summary' && data.file !== undefined) {
      files.push({ file: relative('', data.file), seconds: data.duration_ms / 1000 })
    }
  }
  files.sort((one, other) => other.seconds - one.seconds)
  yield '\nSlowest files:\n'
  for (const { file, seconds } of files.slice(0, 10)) yield `  ${seconds.toFixed(1)} s  ${file}\n`
  const total = [...skipped.values()].reduce((sum, count) => sum + count, 0)
  yield `Skipped tests and suites: ${total}\n`
  for (const [reason, count] of skipped) yield `  ${count}  ${reason}\n`
}
