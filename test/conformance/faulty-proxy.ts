import { connect, createServer } from 'node:net'
import { releaseAfterTest } from '../support/release.ts'

/** A way to be wrong. All texts are bytes as Latin-1: a head, an empty line and a body. */
export interface Fault {
  /** Changes what the service is sent. */
  readonly request?: (text: string) => string
  /** Changes what it answers. */
  readonly answer?: (text: string, request: string) => string
}

const same = (text: string) => text

/**
 * Starts a server that is the service behind it, with a fault. Each request comes over a connection
 * of its own, which the service closes after its answer.
 */
export async function openFaulty(
  url: string,
  { request: changeRequest = same, answer: changeAnswer = same }: Fault,
): Promise<string> {
  const { hostname, port } = new URL(url)
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    let sent = ''
    let answered = ''
    const isStream = () => answered.includes('Content-Type: text/event-stream')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('close', () => upstream.destroy())
    client.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1')
      // Only the body of a long request comes later.
      upstream.write(Buffer.from(sent === '' ? frame(changeRequest(text)) : text, 'latin1'))
      sent ||= text
    })
    upstream.on('data', (chunk: Buffer) => {
      answered += chunk.toString('latin1')
      if (isStream()) client.write(chunk)
    })
    upstream.on('close', () => {
      if (isStream() || answered === '') client.end()
      else client.end(Buffer.from(frame(changeAnswer(answered, sent)), 'latin1'))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseAfterTest(() => server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

/** Corrects the length of a changed body, where there is one that was right before. */
function frame(text: string): string {
  const length = text.length - text.indexOf('\r\n\r\n') - 4
  const fields = text.slice(0, -length || undefined).match(/^content-length:/gim)
  if (fields?.length !== 1 || length === 0 || length > 60_000) return text
  return text.replace(/^(content-length:) *\d+/im, `$1 ${length}`)
}
