import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Format, formats } from '../../src/contract/formats.ts'
import type { ImportReport } from '../../src/contract/shapes.ts'
import { releaseAfterTest } from './release.ts'
import { authorized, type TestService } from './service.ts'
import { waitUntil } from './wait.ts'

/** The answer to an import: its status, and the members of a report or of an error. */
type UploadAnswer = ImportReport & {
  readonly status: number
  readonly error: number
  readonly message: string
}

/** Starts an import whose body is sent piece by piece. It is given up with the test. */
export function startUpload(
  url: string,
  format: Format,
  { headers = {}, query = '' }: { headers?: Record<string, string>; query?: string } = {},
) {
  const sent = request(`${url}/plants.${format}${query}`, {
    method: 'POST',
    headers: { ...authorized, 'Content-Type': formats[format].mediaType, ...headers },
  })
  sent.on('error', () => {})
  sent.flushHeaders()
  releaseAfterTest(() => sent.destroy())
  const answer = (async (): Promise<UploadAnswer> => {
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: response.statusCode, ...JSON.parse(await text(response)) }
  })()
  answer.catch(() => {})
  return {
    request: sent,
    answer,
    /** Resolves when the connection has taken the text, which a stalled service delays. */
    send: (content: string | Buffer) =>
      new Promise<void>((resolve, reject) => {
        sent.write(content, (error) => (error ? reject(error) : resolve()))
      }),
    end: () => void sent.end(),
  }
}

/** Lines of NDJSON with these ids. */
export function toLines(first: number, count: number, name = 'Fern'): string {
  let lines = ''
  for (let id = first; id < first + count; id++) lines += `{"id":${id},"name":"${name} ${id}"}\n`
  return lines
}

/** How many plants a message says were stored. */
export function toStored(message: string): number {
  return Number(/(\d[\d,]*) stored/.exec(message)?.[1]?.replaceAll(',', '') ?? 0)
}

/** Waits until a service takes no more of what is sent to it, while it answers others. */
export async function waitForStall(service: TestService, countTaken: () => number): Promise<void> {
  let before = -1
  await waitUntil(async () => {
    const taken = countTaken()
    const isStalled = taken === before && taken > 0
    before = taken
    for (let count = 0; count < 30; count++) await service.call({ path: '/healthz' })
    return isStalled
  }, 'a stalled sender')
}
