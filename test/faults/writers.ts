import { Agent, request as send } from 'node:http'

/** What became of one create. `unknown` may have been stored, `refused` must not have been. */
export type Outcome = 'ok' | 'refused' | 'unknown'

export interface Attempt {
  readonly id: bigint
  readonly name: string
  outcome: Outcome
  readonly sentAt: number
  answeredAt: number
}

export interface Writers {
  readonly attempts: Attempt[]
  /** Stops after the creates under way. */
  stop(): Promise<void>
}

/** Ids beyond 2^53, so that a rounded one is seen. */
const firstId = 2n ** 53n + 1n

/** Several clients that create plants one after the other, each attempt with an id and a content of its own. */
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
        sentAt: performance.now(),
        answeredAt: 0,
      }
      attempts.push(attempt)
      attempt.outcome = await create(attempt)
      attempt.answeredAt = performance.now()
      if (attempt.outcome !== 'ok') await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** In turn: a plain create, one with a key, and a replace, which all make a plant. */
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
  return {
    attempts,
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

/** Compares what was said with what is stored. */
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
