import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WrongConfig } from '../config.ts'
import { limits } from '../contract/limits.ts'
import type { Order } from '../contract/parameters.ts'
import type { StoredPlant } from '../contract/shapes.ts'
import { expectedSearch, isSearchable, isStorable } from '../contract/values.ts'
import { toJson } from '../json/write.ts'
import { searchPlants } from '../store/lists.ts'
import type { Store } from '../store/store.ts'
import { writeOut } from './files.ts'
import type { JsonFlags } from './flags.ts'
import { explainService, findService, openClient, type ServiceFlags } from './service.ts'
import { stopOnSignal, throwIfStopped } from './signals.ts'
import { withExistingStore } from './stores.ts'
import { type Context, toPrintable, warnOfPlainHttp } from './terminal.ts'

/** Which plants are listed. */
interface Query {
  readonly name?: string
  readonly tag?: string
  readonly order: Order
}

type ListFlags = Query & ServiceFlags & JsonFlags

/** Prints plants as they are found, in a store or by a running service. */
export async function listPlants(
  flags: ListFlags,
  { config, env, terminal }: Context,
): Promise<void> {
  requireTexts(flags)
  const service = findService(flags, env)
  const signal = stopOnSignal()
  let isAnyFound = false

  async function* toLines(plants: AsyncIterable<StoredPlant>): AsyncGenerator<string> {
    const write = flags.json ? toJson : toLine
    for await (const plant of plants) {
      isAnyFound = true
      // These escapes are valid in JSON, too.
      yield `${toPrintable(write(plant))}\n`
    }
  }

  const print = (plants: AsyncIterable<StoredPlant>) =>
    writeOut(Readable.from(toLines(plants)), terminal.output, signal)

  try {
    if (service === undefined) {
      await withExistingStore(config, (store) => print(walkStore(store, flags)))
    } else {
      warnOfPlainHttp(terminal, 'the token and the plants', service.url)
      const { name, tag, order } = flags
      await print(openClient(service).list({ name, tag, order, signal }))
    }
  } catch (error) {
    throwIfStopped(signal, 'Stopped.')
    throw explainService(error, flags.url ?? '')
  }
  if (!isAnyFound && !flags.json) terminal.tell('No plant was found.')
}

function requireTexts({ name = '', tag = '' }: ListFlags): void {
  const mistakes: string[] = []
  if (!isSearchable(name)) mistakes.push(`--name must be ${expectedSearch}.`)
  if (!isStorable(tag)) mistakes.push('--tag must be text without NUL characters.')
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
}

async function* walkStore(
  store: Store,
  { name = '', tag, order }: Query,
): AsyncGenerator<StoredPlant> {
  let after: bigint | undefined
  do {
    const query = { name, tag, order, after, limit: limits.examinedPlants }
    const { plants, next } = await searchPlants(store, query)
    yield* plants
    after = next
    // SQLite reads at once: without a match, no signal would ever be seen.
    await nextTurn()
  } while (after !== undefined)
}

function toLine({ id, name, tag }: StoredPlant): string {
  return tag === undefined ? `${id}  ${name}` : `${id}  ${name}  ${tag}`
}
