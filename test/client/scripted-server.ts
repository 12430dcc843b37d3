import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listen } from '../support/listen.ts'

export type Script = (request: IncomingMessage, response: ServerResponse) => void

/**
 * A server that answers the first request by the first script, and so on; the last script repeats.
 * It is closed when the test ends.
 */
export async function openScriptedServer(...scripts: Script[]) {
  const requests: IncomingMessage[] = []
  /** The connections of requests that are open now. Node.js opens another after an abort. */
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    requests.push(request)
    sockets.add(request.socket)
    scripts[Math.min(requests.length, scripts.length) - 1]?.(request, response)
  })
  server.on('connection', (socket) => socket.on('close', () => sockets.delete(socket)))
  const url = await listen(server)
  return { url, requests, sockets: sockets as ReadonlySet<Socket> }
}

/** How many timers keep the process alive. */
export function countTimers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

/** Answers JSON, or text as it is. */
export function answer(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Script {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return (_request, response) => response.writeHead(status, headers).end(text)
}
