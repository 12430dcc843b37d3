import { cpSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../../src/contract/errors.ts'
import { openConnection } from '../../../src/store/sqlite/connection.ts'
import { buildSqliteStore } from '../../../src/store/sqlite/store.ts'
import { type Store, UnusableStore } from '../../../src/store/store.ts'
import { type Carefulness, toCareless } from './careless-stores.ts'
import { type Fault, toText } from './shim.ts'
import { keyedTag } from './traced-history.ts'

/** A fault and the folder of the store that meets it. */
export interface Job {
  readonly folder: string
  readonly fault: Fault
  readonly from: 'opening' | 'writing'
}

export interface Jobs {
  /** A folder with the database that each job starts from. */
  readonly template: string
  readonly strikes: string
  readonly carefulness: Carefulness
  readonly jobs: readonly Job[]
}

/** The outcome of a create: `ok`, or the number or the text of its failure. */
export interface Told {
  readonly id: string
  readonly name: string
  readonly answer: 'ok' | number | string
}

export interface Report {
  readonly folder: string
  readonly told: Told[]
  readonly hasStruck: boolean
  /** Reads that failed or did not match the answers. */
  readonly readFailures: string[]
  /** Whether a create succeeded after the fault, or the store could not be opened at all. */
  readonly isWell: boolean
}

const rounds = 10
const firstId = 2n ** 60n

async function run({ folder, fault, from }: Job, all: Jobs): Promise<Report> {
  cpSync(all.template, folder, { recursive: true })
  const before = countStrikes(all.strikes)
  if (from === 'opening') process.env.DISK_FAULT = toText(fault)
  const store = openPatiently(join(folder, 'plants.db'), all)
  process.env.DISK_FAULT = toText(fault)
  const told: Told[] = []
  const readFailures: string[] = []
  for (let round = 0; store && round < rounds; round++) {
    // Together, so that they share a commit.
    const batch = Array.from({ length: 1 + 4 * (round % 3) }, (_, index) =>
      create(store, firstId + BigInt(round * 9 + index), round),
    )
    told.push(...(await Promise.all(batch)))
    readFailures.push(...(await findReadFailures(store, told, all.carefulness)))
  }
  process.env.DISK_FAULT = ''
  if (store) told.push(await create(store, firstId - 1n, 0))
  const isWell = store === undefined || told.at(-1)?.answer === 'ok'
  const hasStruck = countStrikes(all.strikes) > before
  return { folder, told, hasStruck, readFailures, isWell }
}

// As an operator does who starts the service again after a fault.
function openPatiently(path: string, { carefulness }: Jobs): Store | undefined {
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      const db = openConnection(path)
      // Small, so that checkpoints and spilled pages happen in the middle of a job.
      db.exec('PRAGMA wal_autocheckpoint = 8; PRAGMA cache_size = 3')
      return toCareless(buildSqliteStore(db), carefulness)
    } catch (error) {
      if (!(error instanceof UnusableStore)) throw error
    }
  }
}

async function create(store: Store, id: bigint, round: number): Promise<Told> {
  const name = `plant ${id} ${'z'.repeat(round * 400)}`
  try {
    const key = { tokenId: 'token', key: String(id) }
    if (round % 4 === 3) await store.createPlantOnce({ id, name, tag: keyedTag }, key)
    else await store.createPlant({ id, name })
    return { id: String(id), name, answer: 'ok' }
  } catch (error) {
    return { id: String(id), name, answer: error instanceof Failure ? error.number : `${error}` }
  }
}

async function findReadFailures(
  store: Store,
  told: readonly Told[],
  carefulness: Carefulness,
): Promise<string[]> {
  const failures: string[] = []
  for (const { id, name, answer } of told) {
    try {
      const plant = await store.getPlant(BigInt(id))
      const isThere = plant?.name === name
      if (carefulness === 'careful' && isThere !== (answer === 'ok'))
        failures.push(`${id} ${answer}`)
    } catch (error) {
      failures.push(String(error))
    }
  }
  return failures
}

function countStrikes(path: string): number {
  return statSync(path).size
}

const given = process.argv[2]
if (import.meta.main && given !== undefined) {
  const all: Jobs = JSON.parse(readFileSync(given, 'utf8'))
  for (const job of all.jobs) console.log(JSON.stringify(await run(job, all)))
  console.log('done')
  // Keeps all files open until it is killed.
  setInterval(() => {}, 60_000)
}
