import createClient from 'openapi-fetch'
import type { paths } from './generated.js'

const [baseUrl = '', token = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } })

const created = await client.POST('/plants', { body: { id: 1, name: 'Monstera', tag: 'indoor' } })
const name: string | undefined = created.data?.name

const again = await client.POST('/plants', { body: { id: 1, name: 'Other' } })
const error: number | undefined = again.error?.error

const got = await client.GET('/plants/{id}', { params: { path: { id: 1 } } })
const id: number | undefined = got.data?.id

console.log(JSON.stringify({ name, error, id, location: created.response.headers.get('location') }))
