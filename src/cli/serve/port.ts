import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import net, { type BoundSocket, createServer } from 'node:net'
import { type Config, WrongConfig } from '../../config.ts'

/**
 * Reserves the port before anything else is touched. It does not listen yet: a client that waits
 * for the service would connect too early. Node.js before 26.4 can only try the port.
 */
export async function reservePort(config: Config): Promise<BoundSocket | undefined> {
  const { port, host } = config
  try {
    const { address } = await lookup(host)
    if ('BoundSocket' in net) return new net.BoundSocket({ port, host: address })
    return await tryPort(port, address)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw explainPort(error, config) ?? refusePort(config, `cannot be used (${code})`)
  }
}

/**
 * The reason why a port cannot be used, if the error has one. Of several services that reserve a
 * port at the same moment, only the first to listen gets it.
 */
export function explainPort(error: unknown, config: Config): WrongConfig | undefined {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  const ofHost = hostReasons[code]
  if (ofHost !== undefined) return new WrongConfig([`HOST ${config.host} ${ofHost}.`])
  const reason = reasons[code]
  return reason === undefined ? undefined : refusePort(config, reason)
}

function refusePort({ port, host }: Config, reason: string): WrongConfig {
  return new WrongConfig([`PORT ${port} on HOST ${host} ${reason}.`])
}

async function tryPort(port: number, host: string): Promise<undefined> {
  const server = createServer().listen({ port, host })
  await once(server, 'listening')
  await new Promise((resolve) => server.close(resolve))
}

const reasons: Record<string, string> = {
  EADDRINUSE:
    'is in use by another program; set PORT or --port to another one, or to 0 for a free one',
  EACCES: 'needs a privilege that this user lacks; set PORT or --port to 1024 or more',
}

/** Reasons that have nothing to do with the port. */
const hostReasons: Record<string, string> = {
  EADDRNOTAVAIL: 'is not an address of this machine; set HOST or --host to one that is',
  ENOTFOUND: 'is not a known host name; set HOST or --host to one that resolves',
}
