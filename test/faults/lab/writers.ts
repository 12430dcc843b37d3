import { Agent, request as send } from 'node:http'
import { releaseAfterTest } from '../../support/release.ts'

/** The outcome of a create. `unknown` may be stored, `refused` must not be. */
export type Outcome = 'ok' | 'refused' | 'unknown'

export interface Attempt {
  readonly id: bigint
  readonly name: string
  outcome: Outcome
}

export interface Writers {
  readonly attempts: Attempt[]
  /** Counts the attempts with this outcome. */
  count(outcome: Outcome): number
  /** Stops when the creates in flight are answered. */
  stop(): Promise<void>
}

/** Ids beyond 2^53, to catch rounding. */
const firstId = 2n ** 53n + 1n

/** Starts clients that create plants, each with an id and a name of its own. */
export function startWriters(url: string, token: string, count: number): Writers {
  const attempts: Attempt[] = []
  const agent = new Agent({ keepAlive: true })
  let isStopped = false

  async function write(): Promise<void> {
    while (!isStopped) {
      const id = firstId + BigInt(attempts.length)
      const attempt: Attempt = {
        id,
        name: `plant ${id}`,
        outcome: 'unknown',
      }
      attempts.push(attempt)
      attempt.outcome = await create(attempt)
      if (attempt.outcome !== 'ok') await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** In turn: a plain create, a keyed create, and a replace. Each makes a plant. */
  function create({ id, name }: Attempt): Promise<Outcome> {
    const kind = Number(id % 3n)
    const key = kind === 1 ? { 'Idempotency-Key': `key-${id}` } : {}
    const method = kind === 2 ? 'PUT' : 'POST'
    const address = kind === 2 ? `${url}/plants/${id}` : `${url}/plants`
    return new Promise((resolve) => {
      const headers = {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...key,
      }
      const sent = send(address, { method, agent, headers }, (answer) => {
        answer.resume().on('end', () => resolve(toOutcome(answer.statusCode)))
      })
      sent.on('error', () => resolve('unknown'))
      sent.end(`{"id":${id},"name":"${name}"}`)
    })
  }

  const running = Promise.all(Array.from({ length: count }, write))
  // The writers of a failed test do not wait for answers, which may never come.
  releaseAfterTest(async () => {
    isStopped = true
    agent.destroy()
    await running
  })
  return {
    attempts,
    count: (wanted) => attempts.filter(({ outcome }) => outcome === wanted).length,
    async stop() {
      isStopped = true
      await running
      agent.destroy()
    },
  }
}

function toOutcome(status = 0): Outcome {
  if (status === 200 || status === 201) return 'ok'
  return status === 504 || status === 500 ? 'unknown' : 'refused'
}

export interface Verdict {
  readonly lost: number
  readonly invented: number
  readonly wrong: number
}

/** Compares the answers with what is stored. */
export function judge(attempts: readonly Attempt[], stored: ReadonlyMap<bigint, string>): Verdict {
  const byId = new Map(attempts.map((attempt) => [attempt.id, attempt]))
  return {
    lost: attempts.filter(({ id, outcome }) => outcome === 'ok' && !stored.has(id)).length,
    invented: [...stored.keys()].filter((id) => {
      const outcome = byId.get(id)?.outcome
      return outcome === undefined || outcome === 'refused'
    }).length,
    wrong: [...stored].filter(([id, name]) => byId.has(id) && byId.get(id)?.name !== name).length,
  }
}
