import { authorized } from '../../support/service.ts'
import { everyOperation } from './every-operation.ts'
import {
  answered,
  expiredToken,
  get,
  post,
  readerToken,
  refused,
  type Scenario,
  visit,
  writerToken,
} from './scenario.ts'

const challenge = 'Bearer realm="plant-store"'
const invalidToken = { headers: { 'www-authenticate': `${challenge}, error="invalid_token"` } }
const noToken = { headers: { 'www-authenticate': challenge } }

const everywhere: Scenario[] = everyOperation.flatMap(({ name, request, scope }) => {
  const withToken = (token: string) => ({
    ...request,
    headers: { ...request.headers, Authorization: `Bearer ${token}` },
  })
  const otherToken = scope === 'plants:read' ? writerToken : readerToken
  const insufficient = `${challenge}, error="insufficient_scope", scope="${scope}"`
  return [
    refused(40100, `${name} without credentials`, { ...request, headers: {} }, noToken),
    refused(40101, `${name} with an unknown token`, withToken('unknown'), invalidToken),
    refused(40102, `${name} with an expired token`, withToken(expiredToken), invalidToken),
    refused(40300, `${name} with a token of another scope`, withToken(otherToken), {
      headers: { 'www-authenticate': insufficient },
    }),
  ]
})

const written: Scenario[] = [
  ...['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer ', 'bearer', 'Token x', 'Bearerx y', ''].map(
    (Authorization) =>
      refused(
        40100,
        `the credentials "${Authorization}"`,
        get('/plants/1', { Authorization }),
        noToken,
      ),
  ),
  refused(
    40100,
    'a token in the query and in a cookie',
    visit(`/plants/1?access_token=${authorized.Authorization.slice(7)}`, {
      Cookie: `access_token=${authorized.Authorization.slice(7)}`,
    }),
    noToken,
  ),
  ...[
    'Bearer plst_000000000000000000000000000000000000',
    'Bearer x',
    'Bearer a b',
    `${authorized.Authorization}\u00a0`,
    'BEARER plst_',
    `Bearer ${'x'.repeat(5000)}`,
  ].map((Authorization) =>
    refused(
      40101,
      `the credentials "${Authorization.slice(0, 30)}"`,
      get('/plants/1', { Authorization }),
      invalidToken,
    ),
  ),
  answered(
    'the name of the scheme in any case',
    get('/plants/1', { Authorization: authorized.Authorization.replace('Bearer', 'bEARER ') }),
  ),
]

const asReader = { Authorization: `Bearer ${readerToken}` }
const asWriter = { Authorization: `Bearer ${writerToken}` }

const scopes: Scenario[] = [
  answered('a get with a token that only reads', get('/plants/1', asReader)),
  refused(40300, 'a missing scope, before a broken body', post('no JSON', asReader)),
  refused(40300, 'a missing scope, before a wrong id', get('/plants/no-id', asWriter)),
]

/** Tokens and scopes. */
export const credentials: Scenario[] = [...everywhere, ...written, ...scopes]
