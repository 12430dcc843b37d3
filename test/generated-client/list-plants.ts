import createClient from 'openapi-fetch'
import type { paths } from './generated.js'
import { listPlants } from './generated-orval.js'

const [baseUrl = '', token = ''] = process.argv.slice(2)
const headers = { Authorization: `Bearer ${token}` }
const client = createClient<paths>({ baseUrl, headers })

// These compile only if a list is an array of plants, and nothing else.
const fetched = await client.GET('/plants', { params: { query: { limit: 2 } } })
const names: string[] = fetched.data?.map(({ name }) => name) ?? []

// A page of events is an array, although a stream has another media type.
const changes = await client.GET('/events', { params: { query: { limit: 2 } } })
const types: string[] = changes.data?.map(({ type }) => type) ?? []

// The generated functions have no base URL of their own.
const { fetch } = globalThis
globalThis.fetch = (path, init) => fetch(`${baseUrl}${path}`, init)
const listed = await listPlants({ limit: 2 }, { headers })
const ids: number[] = listed.status === 200 ? listed.data.map(({ id }) => id) : []

console.log(JSON.stringify({ names, ids, types }))
