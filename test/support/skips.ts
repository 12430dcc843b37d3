import type { TestEvent } from 'node:test/reporters'

/** Reports, at the end of a run, how many tests and suites were skipped, and why. */
// biome-ignore lint/style/noDefaultExport: Node.js takes the default export for the reporter.
export default async function* reportSkips(source: AsyncIterable<TestEvent>) {
  const counts = new Map<string, number>()
  for await (const { type, data } of source) {
    if (type !== 'test:pass' || data.skip === undefined) continue
    const reason = String(data.skip)
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  yield `\nSkipped tests and suites: ${total}\n`
  for (const [reason, count] of counts) yield `  ${count}  ${reason}\n`
}
