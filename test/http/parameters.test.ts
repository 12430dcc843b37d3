import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type { Operation } from '../../src/contract/operation.ts'
import { type OperationName, operations } from '../../src/contract/operations.ts'
import { type ParameterName, parameters, toRequestName } from '../../src/contract/parameters.ts'
import { authorized, json, startService, type TestService } from '../support/service.ts'

/** A value of each parameter that matters for the requests below. */
const values: Record<ParameterName, string> = {
  limit: '1',
  exportLimit: '1',
  eventLimit: '1',
  position: 'latest',
  'Last-Event-ID': 'latest',
  after: '1',
  tag: 'x',
  name: 'fi',
  order: 'desc',
  'on-conflict': 'skip',
  delimiter: 'tab',
  'dry-run': 'true',
  spreadsheet: 'true',
  'If-Match': '"another"',
  createIfMatch: '"another"',
  'If-None-Match': '*',
  'Idempotency-Key': 'key',
}

const bodies: Partial<Record<OperationName, string>> = {
  createPlant: '{"id":9,"name":"new"}',
  replacePlant: '{"name":"other"}',
  importPlantsAsNdjson: '{"id":1,"name":"other"}\n{"id":9,"name":"new"}',
  importPlantsAsCsv: 'id,name\n1,other\n9,new',
}

describe('a parameter of an operation', () => {
  let service: TestService
  before(async () => {
    service = await startService('sqlite::memory:')
  })
  beforeEach(restore)

  /** Undoes what the requests of a test have written. */
  async function restore(): Promise<void> {
    const send = (method: string, id: number, body?: string) =>
      service.call({ method, path: `/plants/${id}`, headers: json, ...(body && { body }) })
    await send('PUT', 1, '{"name":"Ficus","tag":"x"}')
    await send('PUT', 2, '{"name":"Monstera"}')
    await send('DELETE', 9)
  }

  /** Sends a request twice, because a second one can tell what became of the first. */
  async function sendTwice(name: OperationName, parameter: ParameterName, isGiven: boolean) {
    const { method, path, body: declared }: Operation = operations[name]
    if (method !== 'GET') await restore()
    const isStream = parameter === 'Last-Event-ID'
    const isQuery = parameters[parameter].in === 'query'
    const field = toRequestName(parameter)
    const value = values[parameter]
    const query = isGiven && isQuery ? `?${field}=${value}` : ''
    const init: RequestInit = {
      // Of a stream, the headers are enough: they say where it begins.
      method: isStream ? 'HEAD' : method,
      headers: {
        ...authorized,
        ...(isStream && { Accept: 'text/event-stream' }),
        ...(declared && { 'Content-Type': declared.mediaType }),
        ...(isGiven && !isQuery && { [field]: value }),
      },
      body: bodies[name] ?? null,
    }
    const answers = []
    for (let count = 0; count < 2; count++) {
      const answer = await fetch(service.url + path.replace('{id}', '1') + query, init)
      const bytes = Buffer.from(await answer.arrayBuffer())
      answers.push([answer.status, answer.headers.get('Link'), bytes.toString()])
    }
    return answers
  }

  for (const name of Object.keys(operations) as OperationName[]) {
    const { parameters }: Operation = operations[name]
    for (const parameter of parameters) {
      it(`has an effect: ${toRequestName(parameter)} of ${name}`, async () => {
        const without = await sendTwice(name, parameter, false)
        assert.notDeepEqual(await sendTwice(name, parameter, true), without)
        assert.deepEqual(await sendTwice(name, parameter, false), without)
      })
    }
  }
})
