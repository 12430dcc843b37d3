import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { killAfterTest } from '../support/child.ts'
import { waitUntil } from '../support/wait.ts'

const program = fileURLToPath(new URL('writer-program.ts', import.meta.url))

/**
 * Creates plants, one after another on each of its connections, until it is stopped. `prefix` is
 * the command that puts it into another network namespace.
 */
export function startWriter(
  { url, token, firstId }: { url: string; token: string; firstId: number },
  prefix: readonly string[] = [],
) {
  const [file = '', ...args] = [...prefix, process.execPath, program, url, `${firstId}`]
  const child: ChildProcess = spawn(file, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, TOKEN: token },
  })
  killAfterTest(child)
  const acknowledged: string[] = []
  if (child.stdout === null) throw new Error('no output')
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (id) => acknowledged.push(id))
  return {
    /** Waits until so many more are acknowledged. */
    more(count: number): Promise<void> {
      const goal = acknowledged.length + count
      return waitUntil(() => {
        if (child.exitCode !== null) throw new Error(`the writer ended with ${child.exitCode}`)
        return acknowledged.length >= goal
      }, `${count} more plants acknowledged`)
    },
    async stop(): Promise<void> {
      const closed = once(lines, 'close')
      child.stdin?.end()
      await closed
    },
    /** Requires each acknowledged plant in an export as NDJSON, and says how many there are. */
    requireStored(exported: string, what: string): void {
      const stored = new Set(exported.split('\n').map((line) => /^\{"id":(\d+)/.exec(line)?.[1]))
      const lost = acknowledged.filter((id) => !stored.has(id))
      console.log(`${what}: ${acknowledged.length} acknowledged, ${lost.length} lost`)
      assert.deepEqual(lost, [])
    },
  }
}
