import type { Operation } from '../../../src/contract/operation.ts'
import { type OperationName, operations } from '../../../src/contract/operations.ts'
import type { Scope } from '../../../src/contract/scopes.ts'
import type { Request } from '../../support/wire.ts'
import { del, fern, get, post, put, rose, upload } from './scenario.ts'

/** A request for each write that would succeed. That of a read is its path. */
const writes: Partial<Record<OperationName, Request>> = {
  createPlant: post(fern),
  replacePlant: put('/plants/1', rose),
  deletePlant: del('/plants/1'),
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
export const everyOperation: OperationRequest[] = (Object.keys(operations) as OperationName[]).map(
  (name) => {
    const { scope, method, path, isServedUnderLoad }: Operation = operations[name]
    const isWrite = method !== 'GET'
    const request = isWrite ? writes[name] : get(path.replace('{id}', '1'))
    if (request === undefined) throw new Error(`Add a request of ${name}.`)
    return {
      name,
      request,
      scope,
      isWrite,
      isServedUnderLoad: isServedUnderLoad === true,
    }
  },
)
