import { waitUntil } from '../../support/wait.ts'
import { type Client, openClient, parseExactly, type Reply, toContent } from './client.ts'
import type { History } from './history.ts'
import type { FeedEvent } from './mirror.ts'

export type Plants = readonly (readonly [id: bigint, content: string])[]

/** The content of a store in the end, read in three ways that must agree. */
export interface FinalState {
  /** By a GET of each id that was ever written. */
  readonly got: Plants
  /** By the pages of the list. */
  readonly walked: Plants
  /** By the export. */
  readonly exported: Plants
  /** Every change that the journal has. */
  readonly events: readonly FeedEvent[] | undefined
}

/** Small, so that there are many pages after few writes, too. */
const pagePlants = 20
const readersAtOnce = 8

export async function readFinalState(
  url: string,
  token: string,
  { attemptsById }: History,
): Promise<FinalState & { readonly events: readonly FeedEvent[] }> {
  const client = openClient(token)
  try {
    return {
      got: await getEach(client, url, [...attemptsById.keys()]),
      walked: await walk(client, url),
      exported: await readExport(client, url),
      events: await readPages<FeedEvent>(client, `${url}/events?limit=${pagePlants}`),
    }
  } finally {
    client.close()
  }
}

async function getEach(client: Client, url: string, ids: bigint[]): Promise<Plants> {
  const plants: [bigint, string][] = []
  async function get(): Promise<void> {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const reply = await ask(client, `${url}/plants/${id}`)
      if (reply.status === 200) plants.push([id, toContent(id, reply.body)])
    }
  }
  await Promise.all(Array.from({ length: readersAtOnce }, get))
  return plants
}

async function walk(client: Client, url: string): Promise<Plants> {
  const plants = await readPages<FeedEvent['plant']>(client, `${url}/plants?limit=${pagePlants}`)
  return plants.map(({ id, name }) => [id, name])
}

/** Reads page after page, up to one that is empty or names no next one. */
async function readPages<Item>(client: Client, first: string): Promise<Item[]> {
  const items: Item[] = []
  for (let next: string | undefined = first; next !== undefined; ) {
    const { headers, body }: Reply = await ask(client, next)
    const page = parseExactly<Item[]>(body)
    if (page.length === 0) break
    items.push(...page)
    const [, link] = /<([^>]+)>; rel="next"/.exec(String(headers.link)) ?? []
    next = link && new URL(link, first).href
  }
  return items
}

async function readExport(client: Client, url: string): Promise<Plants> {
  const { body } = await ask(client, `${url}/plants.ndjson`)
  return parsePlants(body)
}

/** The plants of an NDJSON export. */
export function parsePlants(text: string): Plants {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const { id, name } = parseExactly<FeedEvent['plant']>(line)
    return [id, name]
  })
}

/**
 * The service works in the end: it answers with a plant or its absence. On a busy machine, a read
 * may take longer than its time: then it is asked again.
 */
async function ask(client: Client, url: string): Promise<Reply> {
  let reply = await client.send(url)
  const isAnswered = async () => {
    if (typeof reply === 'string' || reply.status !== 503) return true
    reply = await client.send(url)
    return false
  }
  await waitUntil(isAnswered, `${url} is answered`)
  if (typeof reply !== 'string' && [200, 404].includes(reply.status)) return reply
  throw new Error(`${url}: ${typeof reply === 'string' ? reply : reply.body}`)
}
