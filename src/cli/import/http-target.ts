import { WrongConfig } from '../../config.ts'
import type { ConflictRule } from '../../contract/parameters.ts'
import { NewPlant } from '../../contract/shapes.ts'
import { buildShapeReader } from '../../json/shape.ts'
import { type Outcome, toOutcome } from '../../transfer/outcome.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { type Answer, maxAttempts, openHttpClient, toMessage } from './http-client.ts'
import type { Target } from './target.ts'

/** The statuses of a plant that the service refuses, whatever it does with others. */
const invalidStatuses = [400, 413]

const readPlant = buildShapeReader(NewPlant)

/** A running service as the target of an import: one request per plant, several at a time. */
export function openHttpTarget(
  address: string,
  token: string,
  onConflict: ConflictRule,
  signal: AbortSignal,
): Target {
  const url = toBaseUrl(address)
  const client = openHttpClient(url, token, signal)

  function put({ id, name, tag }: NewPlant, headers: Record<string, string> = {}): Promise<Answer> {
    return client.send({
      method: 'PUT',
      path: `/plants/${id}`,
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ name, tag }),
    })
  }

  async function putOne(plant: NewPlant): Promise<Outcome> {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const created = await put(plant, { 'If-None-Match': '*' })
      if (created.status === 201) return { is: 'stored' }
      if (invalidStatuses.includes(created.status)) {
        return { is: 'invalid', refusal: { error: 40003, message: toMessage(created) } }
      }
      if (created.status !== 412) throw unexpected(url, created)
      const outcome = await compare(plant)
      if (outcome !== undefined) return outcome
    }
    throw new CommandFailed(
      exitCodes.inputOutput,
      `Another client keeps creating and deleting plant ${plant.id} at ${url}.`,
    )
  }

  /** The outcome for a plant whose id is taken; undefined where it was deleted meanwhile. */
  async function compare(plant: NewPlant): Promise<Outcome | undefined> {
    const current = await client.send({ method: 'GET', path: `/plants/${plant.id}` })
    if (current.status === 404) return undefined
    if (current.status !== 200) throw unexpected(url, current)
    const { name, tag } = readPlant(current.body)
    if (name === plant.name && tag === plant.tag) return toOutcome('already there', onConflict)
    if (onConflict !== 'replace') return toOutcome('conflict', onConflict)
    const replaced = await put(plant)
    if (replaced.status !== 200 && replaced.status !== 201) throw unexpected(url, replaced)
    return { is: 'replaced' }
  }

  return {
    name: url,

    put(plants) {
      // Plants with the same id are sent one after the other: their order decides which one stays.
      const turns = new Map<bigint, Promise<Outcome>>()
      return Promise.all(
        plants.map((plant) => {
          const turn = (turns.get(plant.id) ?? Promise.resolve()).then(() => putOne(plant))
          turns.set(plant.id, turn)
          return turn
        }),
      )
    },

    async close() {
      client.close()
    },
  }
}

function toBaseUrl(address: string): string {
  const url = URL.parse(address)
  const isPlain = url !== null && url.username === '' && url.password === ''
  if (isPlain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '')
  throw new WrongConfig(['--url must be the address of a service, such as http://127.0.0.1:3000.'])
}

function unexpected(url: string, answer: Answer): CommandFailed {
  const reason = `${answer.status}: ${toMessage(answer)}`
  return new CommandFailed(
    exitCodes.inputOutput,
    `${url} does not answer like a Plant Store (${reason}).`,
  )
}
