import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { describe, it } from 'node:test'
import { exportJWK } from 'jose'
// @ts-expect-error It brings no types.
import { Provider } from 'oidc-provider'
import { audience, newKey } from '../support/issuer.ts'
import { listen } from '../support/listen.ts'
import { startService } from '../support/service.ts'
import { call } from '../support/wire.ts'

/** A certified OpenID provider, with a client that may ask for tokens of ours. */
async function startProvider(): Promise<string> {
  const server = createServer()
  const url = await listen(server)
  const keys = await Promise.all(
    ['RS256', 'PS256', 'ES256', 'EdDSA'].map(async (alg) => {
      const { kid, privateKey } = await newKey(alg)
      return { ...(await exportJWK(privateKey)), kid, alg, use: 'sig' }
    }),
  )
  const toServer = (_: unknown, resource: string) => ({
    audience,
    scope: 'plants:read plants:write metrics:read',
    accessTokenFormat: 'jwt',
    accessTokenTTL: 300,
    jwt: { sign: { alg: resource.split('/').at(-1) } },
  })
  const provider = new Provider(url, {
    jwks: { keys },
    clients: [
      {
        client_id: 'gardener',
        client_secret: 'secret',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: toServer },
    },
  })
  server.on('request', provider.callback())
  return url
}

const provider = await startProvider()
const env = { AUTH_ISSUER: provider, AUTH_AUDIENCE: audience }
const service = await startService('sqlite::memory:', { env })

describe('a service that trusts an OpenID provider', () => {
  /** Gets a token as a client does. The name of the resource ends with the algorithm. */
  async function getToken(alg: string, scope: string): Promise<string> {
    const resource = `https://plants.test/${alg}`
    const answer = await fetch(`${provider}/token`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa('gardener:secret')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource }),
    })
    const { access_token: token } = (await answer.json()) as { access_token: string }
    assert.equal(token.split('.').length, 3)
    return token
  }

  async function create(id: number, token: string): Promise<number> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const body = `{"id":${id},"name":"Rose"}`
    return (await call(service.url, { method: 'POST', path: '/plants', headers, body })).status
  }

  for (const [index, alg] of ['RS256', 'PS256', 'ES256', 'EdDSA'].entries()) {
    it(`takes its tokens signed with ${alg}, for what their scopes allow`, async () => {
      assert.equal(await create(index, await getToken(alg, 'plants:read plants:write')), 200)
      assert.equal(await create(index + 10, await getToken(alg, 'plants:read')), 403)
    })
  }
})
