import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { releaseAfterTest } from './release.ts'

/** Lets a server listen on a free port, and answers its address. It is closed with the test. */
export async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  releaseAfterTest(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
