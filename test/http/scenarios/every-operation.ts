import type { Operation } from '../../../src/contract/operation.ts'
import { type OperationName, operations } from '../../../src/contract/operations.ts'
import type { Scope } from '../../../src/contract/scopes.ts'
import type { Request } from '../../support/wire.ts'
import { del, fern, get, post, put, rose, upload } from './scenario.ts'

/** A request for each operation that would succeed. One without such a request does not compile. */
const requests: Record<OperationName, Request> = {
  createPlant: post(fern),
  listPlants: get('/plants'),
  getPlant: get('/plants/1'),
  replacePlant: put('/plants/1', rose),
  deletePlant: del('/plants/1'),
  getMetrics: get('/metrics'),
  exportPlantsAsNdjson: get('/plants.ndjson'),
  exportPlantsAsCsv: get('/plants.csv'),
  listEvents: get('/events'),
  importPlantsAsNdjson: upload('ndjson', `${fern}\n`),
  importPlantsAsCsv: upload('csv', 'id,name\n7,Fern\n'),
}

interface OperationRequest {
  readonly name: OperationName
  readonly request: Request
  readonly scope: Scope
  readonly isWrite: boolean
  readonly isServedUnderLoad: boolean
}

/** Every operation, for what all of them answer alike. */
export const everyOperation: OperationRequest[] = (Object.keys(requests) as OperationName[]).map(
  (name) => {
    const { scope, method, isServedUnderLoad }: Operation = operations[name]
    const isWrite = method !== 'GET'
    return {
      name,
      request: requests[name],
      scope,
      isWrite,
      isServedUnderLoad: isServedUnderLoad === true,
    }
  },
)
