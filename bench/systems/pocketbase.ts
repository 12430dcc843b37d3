/** Starts PocketBase with a collection of plants that needs no token. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { findFreePort } from '../../test/support/postgres.ts'
import type { Lab, Server } from '../lab.ts'
import { pageSize, plantBody, type Requests, seedCount, toRequests } from '../requests.ts'

const identity = 'bench@example.com'
const password = 'a-password-for-the-benchmark'

/** Fields as PocketBase 0.23 and newer describe them. Its own ids are 15 letters and digits. */
const plants = {
  name: 'plants',
  type: 'base',
  fields: [
    { name: 'id', type: 'text', primaryKey: true, required: true, pattern: '^\\d+$', max: 20 },
    { name: 'name', type: 'text', required: true },
    { name: 'tag', type: 'text' },
  ],
  // An empty rule lets everybody in.
  listRule: '',
  viewRule: '',
  createRule: '',
}

export async function startPocketBase(lab: Lab, program: string) {
  const folder = ['--dir', join(lab.folder, 'pocketbase')]
  execFileSync(program, ['superuser', 'upsert', identity, password, ...folder], { stdio: 'ignore' })
  const port = await findFreePort()
  const args = ['serve', '--http', `127.0.0.1:${port}`, ...folder]
  const server = await lab.serve({ args, port, program })
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const url = `http://127.0.0.1:${port}/api/collections${path}`
    const init = { method: 'POST', body: JSON.stringify(body) }
    const type = { 'Content-Type': 'application/json' }
    const response = await fetch(url, { ...init, headers: { ...type, ...headers } })
    if (!response.ok) throw new Error(`PocketBase refuses ${path}: ${await response.text()}`)
    return response.json() as Promise<{ token: string }>
  }
  const { token } = await post('/_superusers/auth-with-password', { identity, password })
  await post('', plants, { Authorization: token })
  return { server, pids: [server.pid], requests: toOwnRequests() } satisfies {
    server: Server
    pids: number[]
    requests: Requests
  }
}

/** An id is a text there, and a page is named by a filter, as ours is by `after`. */
function toOwnRequests(): Requests {
  const { create, get, list } = toRequests(seedCount)
  const records = '/api/collections/plants/records'
  const filter = `filter=(id%3E'{id}')&sort=id&skipTotal=1&perPage=${pageSize}`
  return {
    create: { ...create, path: records, body: plantBody.replace('{id}', '"{id}"') },
    get: { ...get, path: `${records}/{id}` },
    list: { ...list, path: `${records}?${filter}` },
  }
}
