import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { json } from '../support/service.ts'

/** A request to https://plants.example, which is on a port of this machine. */
export interface SiteRequest {
  readonly port: number
  /** The certificate to trust; without one, any is. */
  readonly certificate: string | undefined
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** The address that it comes from. */
  readonly from?: string
}

/** Sends a request over a connection of its own. */
export function openSite({ port, certificate, path, headers, body, from }: SiteRequest) {
  const sent = request({
    ...{ host: '127.0.0.1', port, path, localAddress: from, servername: 'plants.example' },
    ...(certificate === undefined ? { rejectUnauthorized: false } : { ca: certificate }),
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...json, Host: 'plants.example', ...headers },
    agent: false,
  })
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject)
  })
  sent.end(body)
  return { sent, answer }
}

/** Sends a request, and reads its answer. */
export async function callSite(wanted: SiteRequest) {
  const answer = await openSite(wanted).answer
  const { statusCode: status = 0, headers } = answer
  return { status, location: headers.location, body: await text(answer) }
}
