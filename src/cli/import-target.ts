import { type Config, WrongConfig } from '../config.ts'
import type { NewPlant } from '../contract/shapes.ts'
import { openStore } from '../store/open.ts'
import type { ImportOutcome, OnConflict } from '../store/store.ts'
import { openHttpTarget } from './import-http.ts'
import { requireKept } from './store-location.ts'

export type OnConflictFlag = 'fail' | 'skip' | 'replace'

export interface TargetFlags {
  readonly onConflict: OnConflictFlag
  readonly url?: string
  readonly token?: string
}

/** What became of a plant. One with a reason was not taken. */
export interface Outcome {
  readonly is: Exclude<ImportOutcome, 'conflict'> | 'kept' | 'conflict' | 'invalid'
  readonly reason?: string
}

/** Where plants are brought to. */
export interface Target {
  /** Stores plants, and tells what became of each, in order. */
  put(plants: readonly NewPlant[]): Promise<Outcome[]>
  close(): Promise<void>
}

/** Opens the store of the configuration, or a running service when its address is given. */
export async function openTarget(
  flags: TargetFlags,
  config: Config,
  signal: AbortSignal,
): Promise<Target> {
  if (flags.url !== undefined)
    return openHttpTarget(flags.url, toToken(flags, config), flags.onConflict, signal)
  if (flags.token !== undefined) throw new WrongConfig(['--token goes with --url.'])
  requireKept(config)
  const store = await openStore(config.storeLocation)
  const onConflict: OnConflict = flags.onConflict === 'replace' ? 'replace' : 'keep'
  return {
    async put(plants) {
      if (plants.length === 0) return []
      const outcomes = await store.importPlants(plants, onConflict)
      return outcomes.map((outcome) => toOutcome(outcome, flags.onConflict))
    },
    close: () => store.close(),
  }
}

/** What a plant becomes whose id is taken by another one. */
export function toOutcome(outcome: ImportOutcome, onConflict: OnConflictFlag): Outcome {
  if (outcome !== 'conflict') return plainOutcomes[outcome]
  return onConflict === 'skip' ? kept : conflict
}

const plainOutcomes = {
  stored: { is: 'stored' },
  'already there': { is: 'already there' },
  replaced: { is: 'replaced' },
} as const
const kept: Outcome = { is: 'kept' }
const conflict: Outcome = {
  is: 'conflict',
  reason: 'A plant with this id and another content is there; it was not changed.',
}

function toToken({ token }: TargetFlags, { operatorToken }: Config): string {
  const found = token ?? operatorToken
  if (found !== undefined) return found
  throw new WrongConfig(['--url needs a token: set PLANT_STORE_TOKEN, or --token.'])
}
