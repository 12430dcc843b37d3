import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { killAfterTest, programEnv } from '../../support/child.ts'
import { start } from '../../support/command.ts'
import { type Fault, newQuickFolder, type Shim } from './shim.ts'
import { type Operation, readTrace } from './trace.ts'
import { type History, write } from './traced-history.ts'

/** The service itself, or one that does not sync its commits. */
export type Subject = 'service' | 'lax service'

/** A run of a service: it starts, is written to, and ends. */
export interface Stretch {
  readonly clients: number
  readonly writes: number
  readonly end: 'SIGKILL' | 'SIGINT'
  readonly fault?: Fault
}

/** All operations on the disk, and the answers to the clients. */
export interface Recording {
  /** A folder that exists, and the database in a folder that the service makes in it. */
  readonly root: string
  readonly path: string
  readonly operations: Operation[]
  readonly history: History
  readonly acknowledged: number
}

const token = 'a-token-for-the-fault-tests'
const laxService = fileURLToPath(new URL('lax-service.ts', import.meta.url))

/** Runs a service several times on one database, and records its operations on the disk. */
export async function record(
  { toEnv }: Shim,
  subject: Subject,
  stretches: readonly Stretch[],
): Promise<Recording> {
  if (toEnv === undefined) throw new Error('there is no shim')
  const folder = newQuickFolder()
  const root = newQuickFolder()
  const path = join(root, 'data', 'plants.db')
  const trace = join(folder, 'trace')
  const settings = { PORT: '0', DATABASE_URL: `sqlite:${path}`, PLANT_STORE_TOKEN: token }
  const history: History = new Map()
  let acknowledged = 0
  for (const { clients, writes, end, fault } of stretches) {
    const env = { ...settings, ...toEnv({ folder: root, trace, ...(fault && { fault }) }) }
    const service = await open(subject, folder, env)
    const now = () => statSync(trace).size
    acknowledged += await write(history, { url: service.url, token, count: clients, writes, now })
    await service.end(end)
  }
  return { root, path, operations: readTrace(trace), history, acknowledged }
}

async function open(subject: Subject, folder: string, env: Record<string, string>) {
  const { child, url } = await (subject === 'service' ? openReal() : openLax())

  async function openReal() {
    const service = start(['serve'], { folder, env })
    const [, address = ''] = await service.waitFor(/address {3}(http:\S+)/)
    return { child: service.child, url: address }
  }

  async function openLax() {
    const service = spawn(process.execPath, [laxService], {
      cwd: folder,
      env: { ...programEnv, ...env },
    })
    killAfterTest(service)
    const [line] = await once(service.stdout, 'data')
    return { child: service, url: String(line).trim().split(/ +/).at(-1) ?? '' }
  }

  return {
    url,
    async end(signal: NodeJS.Signals) {
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    },
  }
}
