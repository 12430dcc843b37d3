import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { releaseAfterTest } from './release.ts'
import { authorized } from './service.ts'
import { waitUntil } from './wait.ts'

/** An event as a client gets it. */
interface ReceivedEvent {
  readonly position: string
  readonly type: string
  readonly at: string
  readonly plant: { readonly id: number; readonly name: string; readonly tag?: string }
}

/** Follows the events of a service. The connection is closed with the test. */
export async function readEvents(url: string, query = '', headers: Record<string, string> = {}) {
  const request = get(`${url}/events${query}`, {
    agent: false,
    headers: { ...authorized, Accept: 'text/event-stream', ...headers },
  })
  request.on('error', () => {})
  releaseAfterTest(() => request.destroy())
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const events: ReceivedEvent[] = []
  let begin: string | undefined
  let comments = 0
  let rest = ''

  function take(block: string): void {
    if (block.startsWith(':')) comments++
    const fields = new Map(
      block.split('\n').map((line) => {
        const [name = ''] = line.split(':', 1)
        return [name, line.slice(name.length + 2)]
      }),
    )
    if (begin === undefined && !/^id: [\w-]+\nretry: 1000$/.test(block)) {
      throw new Error(`another beginning: ${block}`)
    }
    begin ??= fields.get('id')
    const data = fields.get('data')
    if (data === undefined) return
    const event: ReceivedEvent = JSON.parse(data)
    if (event.position !== fields.get('id') || event.type !== fields.get('event')) {
      throw new Error(`an event with other fields: ${block}`)
    }
    events.push(event)
  }

  response.setEncoding('utf8').on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) take(block)
  })
  response.on('error', () => {})
  const ended = new Promise<void>((resolve) => response.once('close', resolve))
  return {
    response,
    /** The position where the stream began, once it is known. */
    begin: () => begin,
    events: events as readonly ReceivedEvent[],
    comments: () => comments,
    /** Resolves when the stream has ended, in whichever way. */
    ended,
    waitFor: (count: number) =>
      waitUntil(() => events.length >= count, `${count} events have come`),
    close: () => request.destroy(),
  }
}
