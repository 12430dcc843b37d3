import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { errors } from '../../src/contract/errors.ts'
import { buildComponents, printOpenApi } from '../../src/contract/openapi.ts'
import { Plant, StoredPlants } from '../../src/contract/shapes.ts'
import { methodsByPath } from '../../src/http/router.ts'

const committed = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(committed)

const operations = Object.values<Json>(document.paths).flatMap(Object.values<Json>)
const responses = operations.flatMap(({ responses }) => Object.entries<Json>(responses))

describe('the OpenAPI document', () => {
  it('is committed as the contract makes it', () => {
    assert.equal(committed, printOpenApi({ baseUrl: '/' }))
  })

  it('takes less than 90,000 bytes', () => {
    assert.ok(Buffer.byteLength(committed) < 90_000, `${Buffer.byteLength(committed)} bytes`)
  })

  it('passes the recommended rules of Redocly without an error or a warning', async () => {
    assert.deepEqual(await lint(committed), [])
  })

  it('would not pass them with an operation that has no response', async () => {
    const broken = { ...document, paths: { '/plants': { post: { responses: {} } } } }
    assert.notDeepEqual(await lint(JSON.stringify(broken)), [])
  })

  it('says what the specification says about a create', () => {
    assert.equal(document.info.version, '1.0.0')
    const { post } = document.paths['/plants']
    assert.equal(post.requestBody.required, true)
    assert.deepEqual(Object.keys(post.requestBody.content), ['application/json'])
    const { NewPlant, Plant, Error: failure } = document.components.schemas
    assert.deepEqual(NewPlant.required, ['id', 'name'])
    assert.equal(NewPlant.allOf, undefined)
    assert.deepEqual(
      [NewPlant.properties.id.type, NewPlant.properties.id.format],
      ['integer', 'int64'],
    )
    assert.deepEqual(Object.keys(Plant.properties), ['name', 'tag'])
    assert.deepEqual(Plant.required, ['name'])
    assert.deepEqual(failure.required, ['error', 'message'])
    assert.deepEqual(
      [failure.properties.error.type, failure.properties.error.format],
      ['integer', 'int32'],
    )
    assert.equal(document.components.securitySchemes.bearerAuth.scheme, 'bearer')
  })

  it('lists the methods that programs call, and tells HEAD, OPTIONS and web pages in words', () => {
    const web = ['/', '/assets/{name}', '/docs', '/openapi.json']
    for (const [path, methods] of methodsByPath) {
      const listed = Object.keys(document.paths[path] ?? {}).map((method) => method.toUpperCase())
      const called = methods.filter((method) => method !== 'HEAD' && method !== 'OPTIONS')
      assert.deepEqual(listed.sort(), web.includes(path) ? [] : called, path)
    }
    assert.deepEqual(
      Object.keys(document.paths).filter((path) => !methodsByPath.has(path)),
      [],
    )
    for (const word of ['HEAD', 'OPTIONS', '`/openapi.json`', '`/docs`', '`/`']) {
      assert.ok(document.info.description.includes(word), word)
    }
  })

  it('names every number of the catalogue that an operation or a page can answer', () => {
    const elsewhere = ['40500']
    const named = new Set(committed.match(/"\d{5}"(?=: \{)/g)?.map((number) => number.slice(1, -1)))
    assert.deepEqual(
      Object.keys(errors).filter((number) => !named.has(number)),
      elsewhere,
    )
    for (const number of ['40400', ...elsewhere]) {
      assert.ok(document.info.description.includes(number))
    }
  })

  it('has one plainly named response for each status of a failure', () => {
    const names = new Map<string, string>()
    for (const [status, response] of responses) {
      assert.equal('$ref' in response, Number(status) >= 400, JSON.stringify(response))
      if ('$ref' in response) names.set(response.$ref, status)
    }
    assert.equal(new Set(names.values()).size, names.size)
    assert.equal(Object.keys(document.components.responses).length, names.size)
    for (const name of names.keys()) assert.match(name, /^#\/components\/responses\/[A-Za-z]+$/)
  })

  it('has an example of every body of a request and of a success', () => {
    const bodies = operations.map(({ requestBody }) => requestBody).filter(Boolean)
    const successes = responses.filter(([, { content }]) => content).map(([, one]) => one)
    for (const { content } of [...bodies, ...successes]) {
      const [usual] = Object.values<Json>(content)
      assert.ok(usual?.example, JSON.stringify(content))
    }
    assert.ok(successes.length >= 13)
  })

  it('makes a file of an export, so that generated clients do not parse it as JSON', () => {
    for (const path of ['/plants.ndjson', '/plants.csv']) {
      const [file] = Object.values<Json>(document.paths[path].get.responses[200].content)
      assert.equal(file?.schema.format, 'binary')
    }
  })

  it('asks for a bearer token wherever it does not say otherwise', () => {
    assert.deepEqual(document.security, [{ bearerAuth: [] }])
    const open = operations.filter(({ security }) => security !== undefined)
    assert.deepEqual(
      open.map(({ operationId, security }) => [operationId, security]),
      [
        ['getHealth', []],
        ['getReadiness', []],
      ],
    )
  })

  it('has the test event in the values of Plant-Event', () => {
    for (const [type, { post }] of Object.entries<Json>(document.webhooks)) {
      const [event] = post.parameters
      assert.deepEqual([event.name, event.schema.enum], ['Plant-Event', [type, 'plant.test']])
    }
  })

  it('does not promise that a create can match an ETag', () => {
    const { createIfMatch } = document.components.parameters
    assert.equal(createIfMatch.name, 'If-Match')
    assert.match(createIfMatch.description, /412/)
  })

  it('gives no example of an optional parameter, which viewers would fill in and send', () => {
    const parameters = Object.values<Json>(document.components.parameters)
    const optional = parameters.filter(({ required }: Json) => !required)
    assert.notEqual(optional.length, 0)
    assert.doesNotMatch(JSON.stringify(optional), /"examples?":/)
  })

  it('gives every integer a format and bounds, those of int64 to the last digit', () => {
    const integers = committed.match(/\{[^{}]*"type": "integer"[^{}]*\}/g) ?? []
    assert.notEqual(integers.length, 0)
    for (const integer of integers) {
      assert.match(integer, /"format": "int(32|64)"/)
      const [minimum, maximum] = integer.includes('int64')
        ? ['-9223372036854775808', '9223372036854775807']
        : ['\\d+', '\\d+']
      assert.match(integer, new RegExp(`"minimum": ${minimum},\\s+"maximum": ${maximum}\\b`))
    }
  })
})

describe('the components of the document', () => {
  it('hold a shape that is referred to, and the shape of its items', () => {
    const { collected, referToShape } = buildComponents()
    assert.deepEqual(referToShape(StoredPlants), { $ref: '#/components/schemas/StoredPlants' })
    assert.deepEqual(Object.keys(collected.schemas), ['StoredPlant', 'StoredPlants'])
  })

  it('refuse two different shapes with one title', () => {
    const { referToShape } = buildComponents()
    referToShape(Plant)
    referToShape({ ...Plant })
    assert.throws(() => referToShape({ ...Plant, required: [] }), /"Plant"/)
  })
})

// biome-ignore lint/suspicious/noExplicitAny: a document has no type of its own
type Json = Record<string, any>

async function lint(source: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  return problems.map(
    ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`,
  )
}
