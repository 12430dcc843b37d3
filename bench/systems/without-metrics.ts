/**
 * Takes the recording of metrics out of the source while Node.js loads it, to measure its cost:
 *
 *   npx node bench/compare.ts --before . --after-env NODE_OPTIONS=--import=$PWD/bench/systems/without-metrics.ts
 */
import { registerHooks } from 'node:module'

/** What is replaced in which file. A pattern that is not found is a mistake. */
const removals: readonly [file: string, pattern: RegExp, replacement: string][] = [
  ['src/http/server.ts', /counters\.begun\+\+/, ''],
  ['src/http/exchange.ts', /^ {2}recordAnswer\(exchange, status, bytes\)$/m, ''],
  ['src/store/batcher.ts', /^ {4}observe\(batchItems, .*\)$/m, ''],
  ['src/store/batcher.ts', /^ {4}const startedAt = performance\.now\(\)$/m, 'const startedAt = 0'],
  ['src/store/batcher.ts', /^ {4}observe\(batchSeconds, .*\)$/m, ''],
  ['src/store/sqlite/writer.ts', /^ {6}observe\(commitSeconds, .*\)$/m, ''],
  ['src/store/sqlite/writer.ts', /^ {6}if \(sync === 'FULL'\) observe\(fsyncSeconds, .*\)$/m, ''],
  ['src/metrics/process.ts', /^ {4}observe\(delays, .*\)$/m, ''],
]

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    const wanted = removals.filter(([file]) => url.endsWith(file))
    if (wanted.length === 0) return loaded
    let source = String(loaded.source)
    for (const [file, pattern, replacement] of wanted) {
      if (!pattern.test(source)) throw new Error(`${file} has no ${pattern}`)
      source = source.replace(pattern, replacement)
    }
    return { ...loaded, source }
  },
})
