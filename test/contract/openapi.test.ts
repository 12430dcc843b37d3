import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { errors } from '../../src/contract/errors.ts'
import { buildOpenApi } from '../../src/contract/openapi.ts'
import { methodsByPath } from '../../src/contract/operations.ts'

const committed = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(committed)

describe('the OpenAPI document', () => {
  it('is committed as the contract makes it', () => {
    assert.deepEqual(document, JSON.parse(JSON.stringify(buildOpenApi({ baseUrl: '/' }))))
  })

  it('passes the recommended rules of Redocly without an error or a warning', async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({
      source: committed,
      absoluteRef: 'openapi.json',
      config,
    })
    assert.deepEqual(
      problems.map(
        ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`,
      ),
      [],
    )
  })

  it('is what that check can find fault with', async () => {
    const broken = { ...document, paths: { '/plants': { post: { responses: {} } } } }
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: JSON.stringify(broken), config })
    assert.ok(problems.length > 0)
  })

  it('says what the user’s document says of the create', () => {
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
    assert.equal(document.components.securitySchemes.bearerToken.scheme, 'bearer')
  })

  it('lists exactly the methods that each path knows', () => {
    for (const [path, methods] of methodsByPath) {
      const listed = Object.keys(document.paths[path]).map((method) => method.toUpperCase())
      assert.deepEqual(listed.sort(), methods, path)
    }
    assert.deepEqual(Object.keys(document.paths).sort(), [...methodsByPath.keys()].sort())
  })

  it('names every number of the catalogue that an operation or a page can answer', () => {
    const elsewhere = ['40400', '40500']
    const named = new Set(committed.match(/"\d{5}"(?=: \{)/g)?.map((number) => number.slice(1, -1)))
    assert.deepEqual(
      Object.keys(errors).filter((number) => !named.has(number)),
      elsewhere,
    )
    for (const number of elsewhere) assert.ok(document.info.description.includes(number))
  })
})
