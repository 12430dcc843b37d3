import { Agent, request as send } from 'node:http'

/** A state that a client gave a plant: its name, or undefined if it was deleted. */
interface State {
  readonly name: string | undefined
  /** The length of the trace when it was requested, and when it was acknowledged. */
  readonly askedAt: number
  acknowledgedAt: number
}

/** The states of each plant in order: it has one client, which waits for each answer. */
export type History = Map<bigint, State[]>

export interface Clients {
  readonly url: string
  readonly token: string
  readonly count: number
  readonly writes: number
  /** The current length of the trace. */
  readonly now: () => number
}

/** Beyond this, JavaScript numbers are not exact. */
const firstId = 2n ** 53n

/** The tag of plants that were created with a key and never changed. */
export const keyedTag = 'keyed'

/** Lets several clients create, replace and delete plants, and notes the answers. */
export async function write(history: History, clients: Clients): Promise<number> {
  const agent = new Agent({ keepAlive: true })
  let left = clients.writes
  let acknowledged = 0

  async function run(client: number): Promise<void> {
    const own: bigint[] = []
    while (left-- > 0) {
      const step = own.length > 3 ? left % 6 : 0
      const isAcknowledged = await take(step)
      if (isAcknowledged) acknowledged++
    }

    function take(step: number): Promise<boolean> {
      const chosen = left % own.length
      if (step === 5) return remove(own.splice(chosen, 1)[0] as bigint)
      if (step === 4) return put(own[chosen] as bigint, `again ${left} ${'x'.repeat(left % 300)}`)
      const id = firstId + BigInt(history.size) * 7n + BigInt(client) * 2n ** 58n
      const name = `plant ${id} ${'y'.repeat(left % 500)}`
      if (step === 2) return createWithKey(id, name)
      own.push(id)
      return step === 3 ? put(id, name) : create(id, name)
    }
  }

  function create(id: bigint, name: string): Promise<boolean> {
    return note(id, name, () => ask('POST', '/plants', {}, `{"id":${id},"name":"${name}"}`))
  }

  function createWithKey(id: bigint, name: string): Promise<boolean> {
    const body = `{"id":${id},"name":"${name}","tag":"${keyedTag}"}`
    return note(id, name, () => ask('POST', '/plants', { 'Idempotency-Key': String(id) }, body))
  }

  function put(id: bigint, name: string): Promise<boolean> {
    return note(id, name, () => ask('PUT', `/plants/${id}`, {}, `{"id":${id},"name":"${name}"}`))
  }

  function remove(id: bigint): Promise<boolean> {
    return note(id, undefined, () => ask('DELETE', `/plants/${id}`))
  }

  async function note(
    id: bigint,
    name: string | undefined,
    run: () => Promise<boolean>,
  ): Promise<boolean> {
    const state = { name, askedAt: clients.now(), acknowledgedAt: Number.POSITIVE_INFINITY }
    const before = history.get(id) ?? [{ name: undefined, askedAt: 0, acknowledgedAt: 0 }]
    history.set(id, [...before, state])
    const isAcknowledged = await run()
    if (isAcknowledged) state.acknowledgedAt = clients.now()
    return isAcknowledged
  }

  function ask(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body = '',
  ): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const sent = send(clients.url + path, {
        method,
        agent,
        headers: {
          Authorization: `Bearer ${clients.token}`,
          ...(body && { 'Content-Type': 'application/json', 'Content-Length': body.length }),
          ...headers,
        },
      })
      sent.on('response', (answer) => {
        const status = answer.statusCode ?? 0
        answer.resume().on('end', () => resolve(status >= 200 && status < 300))
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  try {
    await Promise.all(Array.from({ length: clients.count }, (_, client) => run(client)))
    return acknowledged
  } finally {
    agent.destroy()
  }
}

/** The damage to the plants after a power cut. */
export interface Losses {
  /** An acknowledged state is gone: a plant is missing, older, or back again. */
  lost: number
  /** A plant or a content that had not been requested by then. */
  invented: number
}

/** Compares what is stored with the requests and answers up to this length of the trace. */
export function findLosses(
  history: History,
  stored: ReadonlyMap<bigint, string>,
  at: number,
): Losses {
  const losses = { lost: 0, invented: 0 }
  for (const [id, states] of history) {
    const asked = states.filter(({ askedAt }) => askedAt <= at)
    const settled = asked.findLastIndex(({ acknowledgedAt }) => acknowledgedAt <= at)
    const name = stored.get(id)
    if (asked.slice(Math.max(settled, 0)).some((state) => state.name === name)) continue
    if (asked.some((state) => state.name === name)) losses.lost++
    else if (name !== undefined) losses.invented++
  }
  for (const id of stored.keys()) if (!history.has(id)) losses.invented++
  return losses
}
