import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { errors } from '../../src/contract/errors.ts'
import { printOpenApi } from '../../src/contract/openapi.ts'
import { methodsByPath } from '../../src/http/router.ts'

const committed = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(committed)

const operations = Object.values<Json>(document.paths).flatMap(Object.values<Json>)

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

  it('says what the specification says about a create', () => {
    assert.equal(document.info.version, '1.0.0')
    const { post } = document.paths['/plants']
    assert.equal(post.requestBody.required, true)
    assert.deepEqual(Object.keys(post.requestBody.content), ['application/json'])
    const { NewPlant, Plant, Error: failure } = document.components.schemas
    assert.deepEqual(NewPlant.required, ['id', 'name'])
    assert.equal(NewPlant.allOf, undefined)
    const { id } = NewPlant.properties
    assert.deepEqual([id.type, id.format], ['integer', 'int64'])
    assert.deepEqual(Object.keys(Plant.properties), ['name', 'tag'])
    assert.deepEqual(Plant.required, ['name'])
    assert.deepEqual(failure.required, ['error', 'message'])
    const { error } = failure.properties
    assert.deepEqual([error.type, error.format], ['integer', 'int32'])
    assert.equal(document.components.securitySchemes.bearerAuth.scheme, 'bearer')
  })

  it('lists the methods that programs call, and tells HEAD, OPTIONS and web pages in words', () => {
    const web = ['/', '/assets/{name}', '/docs', '/openapi.json']
    for (const [path, methods] of methodsByPath) {
      const listed = Object.keys(document.paths[path] ?? {}).map((method) => method.toUpperCase())
      const called = methods.filter((method) => method !== 'HEAD' && method !== 'OPTIONS')
      assert.deepEqual(listed.sort(), web.includes(path) ? [] : called, path)
    }
    const unknown = Object.keys(document.paths).filter((path) => !methodsByPath.has(path))
    assert.deepEqual(unknown, [])
    for (const word of ['HEAD', 'OPTIONS', '`/openapi.json`', '`/docs`', '`/`']) {
      assert.ok(document.info.description.includes(word), word)
    }
  })

  it('names every number of the catalogue that an operation or a page can answer', () => {
    const elsewhere = ['40500']
    const named = new Set(committed.match(/"\d{5}"(?=: \{)/g)?.map((number) => number.slice(1, -1)))
    const unnamed = Object.keys(errors).filter((number) => !named.has(number))
    assert.deepEqual(unnamed, elsewhere)
    for (const number of ['40400', ...elsewhere]) {
      assert.ok(document.info.description.includes(number))
    }
  })

  it('asks for a bearer token wherever it does not say otherwise', () => {
    assert.deepEqual(document.security, [{ bearerAuth: [] }])
    const open = operations.filter(({ security }) => security !== undefined)
    const securities = open.map(({ operationId, security }) => [operationId, security])
    assert.deepEqual(Object.fromEntries(securities), { getHealth: [], getReadiness: [] })
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

// biome-ignore lint/suspicious/noExplicitAny: a document has no type of its own
type Json = Record<string, any>

async function lint(source: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  return problems.map(
    ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`,
  )
}
