/** Runs seeds in a thread of its own, whose modules and clocks are those of the simulation. */
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { type Fault, faults } from './faults.ts'
import type { Job, Result } from './search.ts'

const root = `${pathToFileURL(join(import.meta.dirname, '..', '..'))}/`
const isSource = (url = '') => url.startsWith(`${root}src/`) || url.startsWith(`${root}client/`)

/** What the source imports, and the file of this folder that stands in for it. */
const standIns: Record<string, string> = {
  'node:timers/promises': 'timers.ts',
  'node:crypto': 'crypto.ts',
  [`${root}src/store/postgres/connection.ts`]: 'connection.ts',
  [`${root}src/webhooks/transport.ts`]: 'transport.ts',
}

/** Gives the source its stand-ins, and puts a fault into it, as this thread loads it afterwards. */
function installHooks(fault: Fault | undefined): void {
  registerHooks({
    resolve(specifier, context, next) {
      if (!isSource(context.parentURL)) return next(specifier, context)
      const wanted = specifier.startsWith('.')
        ? new URL(specifier, context.parentURL).href
        : specifier
      const standIn = standIns[wanted]
      if (standIn === undefined) return next(specifier, context)
      return { url: new URL(standIn, import.meta.url).href, shortCircuit: true }
    },
    load(url, context, next) {
      const loaded = next(url, context)
      if (fault === undefined || url !== `${root}${fault.file}`) return loaded
      const source = String(loaded.source)
      if (source.split(fault.text).length !== 2) {
        throw new Error(`The fault "${fault.name}": ${fault.file} no longer has ${fault.text}`)
      }
      return { ...loaded, source: source.replace(fault.text, () => fault.broken) }
    },
  })
}

const { first, count, fault, profile }: Job = workerData
installHooks(faults.find(({ name }) => name === fault))
// Every failover makes hundreds of errors that nobody reads.
Error.stackTraceLimit = 0
const { simulate } = await import('./simulate.ts')
const result: Result = { hashes: [], steps: 0, failed: undefined }
for (let seed = first; seed < first + count; seed++) {
  const { failure, hash, steps } = await simulate(seed, 'untraced', profile)
  result.hashes.push(hash)
  result.steps += steps
  if (failure === undefined) continue
  result.failed = { seed, failure, again: await simulate(seed, 'traced', profile) }
  break
}
parentPort?.postMessage(result)
