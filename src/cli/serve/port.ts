import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import net, { createServer } from 'node:net'
import { type Config, WrongConfig } from '../../config.ts'

/** Refuses a port that cannot be used before anything else is touched. */
export async function requireFreePort({ port, host }: Config): Promise<void> {
  try {
    const { address } = await lookup(host)
    await tryPort(port, address)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = reasons[code ?? ''] ?? `cannot be used (${code})`
    throw new WrongConfig([`PORT ${port} on HOST ${host} ${reason}.`])
  }
}

/**
 * Binds the port and releases it. It does not listen: a client that waits for the service to come
 * back would connect, and be reset at the release.
 */
async function tryPort(port: number, host: string): Promise<void> {
  if ('BoundSocket' in net) {
    new net.BoundSocket({ port, host }).close()
    return
  }
  // Node.js before 26.4 can only listen.
  const server = createServer().listen({ port, host })
  await once(server, 'listening')
  await new Promise((resolve) => server.close(resolve))
}

const reasons: Record<string, string> = {
  EADDRINUSE:
    'is in use by another program; set PORT or --port to another one, or to 0 for a free one',
  EACCES: 'needs a privilege that this user lacks; set PORT or --port to 1024 or more',
  EADDRNOTAVAIL: 'is not an address of this machine; set HOST or --host to one that is',
  ENOTFOUND: 'is not a known host name; set HOST or --host to one that resolves',
}
