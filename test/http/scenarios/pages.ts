import { buildOpenApi } from '../../../src/contract/openapi.ts'
import { buildAssets, toAsset } from '../../../web/assets.ts'
import { answered, fern, refused, type Scenario, visit } from './scenario.ts'

/** The methods that `Allow` lists. */
const onPlants = 'GET, HEAD, OPTIONS, POST'
const onPlant = 'DELETE, GET, HEAD, OPTIONS, PUT'
const onPages = 'GET, HEAD, OPTIONS'
const anywhere = 'DELETE, GET, HEAD, OPTIONS, POST, PUT'

/** The page loads its own parts and calls its own service, and nobody may frame it. */
const nothingForeign = new RegExp(
  "^default-src 'none'; ((script|style|img|connect)-src 'self'; ){4}" +
    "((base-uri|form-action|frame-ancestors) 'none'; ){3}" +
    "require-trusted-types-for 'script'; trusted-types 'none'$",
)

const assets = [...buildAssets().values()]
const scripts = assets.filter(({ name }) => name.startsWith('assets/'))

const document = JSON.stringify(buildOpenApi({ baseUrl: '/' }))
const documentTag = `"${toAsset('openapi.json', document).hash}"`

const pathOf: Record<string, string> = { 'page.html': '/', 'reference.html': '/docs' }

/** The entity tag of each path, for clients that know it. */
const tags = [
  ['/openapi.json', documentTag],
  ...assets.map(({ name, hash }) => [pathOf[name] ?? `/${name}`, `"${hash}"`]),
] as [path: string, tag: string][]

const withoutToken: Scenario[] = [
  ...['/healthz', '/readyz'].map((path) =>
    answered(`${path} without a token`, visit(path), {
      body: '{"status":"ok"}',
      headers: { 'cache-control': 'no-store' },
    }),
  ),
  answered('the OpenAPI document', visit('/openapi.json'), {
    body: /^\{"openapi":"3\.1\.0".*"url":"\/".*"minimum":-9223372036854775808/,
    headers: { 'cache-control': 'no-cache', etag: /^"[\w-]{12}"$/, vary: 'Accept-Encoding' },
  }),
  ...tags.map(([path, etag]) =>
    answered(`${path} that is known`, visit(path, { 'If-None-Match': etag }), {
      status: 304,
      body: '',
      headers: { etag },
    }),
  ),
  ...['/', '/docs', '/openapi.json'].map((path) =>
    answered(`${path} for a client that has any`, visit(path, { 'If-None-Match': '*' }), {
      status: 304,
      body: '',
      headers: { etag: /^"/ },
    }),
  ),
  ...['/', '/docs'].flatMap((path) => [
    answered(`the web page ${path}`, visit(path), {
      body: /^<!doctype html>/,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': nothingForeign,
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
        'content-encoding': '',
      },
    }),
    answered(`the web page ${path} for a browser`, visit(path, { 'Accept-Encoding': 'gzip, br' }), {
      headers: { 'content-encoding': 'gzip', vary: 'Accept-Encoding' },
    }),
  ]),
  ...scripts.map(({ name }) =>
    answered(`the file ${name}`, visit(`/${name}`), {
      headers: { 'cache-control': /immutable/, 'content-type': /./ },
    }),
  ),
  refused(40400, 'a file that does not exist', visit('/assets/page.js')),
  answered('health without a valid token', visit('/healthz', { Authorization: 'Basic x' }), {
    headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
  }),
  refused(40100, 'a get without a valid token', visit('/plants', { Authorization: 'Basic x' }), {
    headers: { 'cache-control': 'private, no-cache', 'x-content-type-options': 'nosniff' },
  }),
  refused(40400, 'an unknown path, which is not cached', visit('/nowhere/'), {
    body: /See \/docs/,
    headers: { 'cache-control': '', 'x-content-type-options': 'nosniff' },
  }),
  refused(40400, 'a path with a slash at its end', visit('/plants/'), {
    body: /Leave out the slash at the end/,
  }),
]

const unrouted: Scenario[] = [
  ...[
    '/nothing',
    '/plants/',
    '//plants/1',
    '/Plants/1',
    '/plants/1/2',
    '/plants%2F1',
    '/plants;x=1/1',
  ].map((path) => refused(40400, `the path ${path}`, visit(path))),
  refused(40400, 'a path that only resembles a known one', {
    method: 'POST',
    path: '/openapiXjson',
  }),
  ...['PUT', 'DELETE', 'PATCH', 'TRACE', 'QUERY', 'PROPFIND'].map((method) =>
    refused(
      40500,
      `${method} on /plants`,
      { method, path: '/plants', body: 'no JSON' },
      { headers: { allow: onPlants } },
    ),
  ),
  refused(
    40500,
    'POST on a plant, before the token is judged',
    { method: 'POST', path: '/plants/1', body: fern },
    { headers: { allow: onPlant } },
  ),
  refused(40500, 'an unsupported method on a percent-encoded path', {
    method: 'DELETE',
    path: '/%70lants',
  }),
]

function toPaths(allow: string, paths: string): { path: string; allow: string }[] {
  return paths.split(' ').map((path) => ({ path, allow }))
}

const options: Scenario[] = [
  ...[
    ...toPaths(onPlants, '/plants?x=y /plants.ndjson /plants.csv'),
    ...toPaths(onPlant, '/%70lants/1 /plants/abc'),
    ...toPaths(onPages, '/healthz /readyz /openapi.json /docs / /assets/page.js /metrics /events'),
    ...toPaths(anywhere, '*'),
  ].map(({ path, allow }) =>
    answered(`OPTIONS ${path}`, { method: 'OPTIONS', path }, { status: 204, headers: { allow } }),
  ),
]

/** What needs no token, and what no operation answers. */
export const pages: Scenario[] = [...withoutToken, ...unrouted, ...options]
