/** What must not compile. `npm run check` fails when one of these lines does. */
import type { Operation } from '../../src/contract/operations.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { Answer, Handlers } from '../../src/http/handlers.ts'

type Created = Answer<'createPlant'>
type Got = Answer<'getPlant'>

declare const operation: Omit<Operation, 'scope'>
declare const handlers: Handlers
const { createPlant, getPlant, ...others } = handlers
declare const call: Parameters<typeof getPlant>[0]
const headers = { Location: '', ETag: '' }
const body = { name: '' }

export const whole: Handlers = { createPlant, getPlant, ...others }
// @ts-expect-error an operation without a handler
export const withoutHandler: Handlers = { createPlant, ...others }

export const withScope: Operation = { ...operation, scope: 'plants:read' }
// @ts-expect-error an operation without a scope
export const withoutScope: Operation = operation
// @ts-expect-error a scope that does not exist
export const wrongScope: Scope = 'plants:burn'
// @ts-expect-error a number that is not in the catalogue
export const wrongNumber: Operation['failures'] = [40099]

export const right: Created = { status: 200, headers, body }
// @ts-expect-error a status that the operation does not declare
export const wrongStatus: Created = { status: 201, headers, body }
// @ts-expect-error a header that the operation promises is missing
export const wrongHeaders: Created = { status: 200, headers: { Location: '' }, body }
// @ts-expect-error a body of another shape
export const wrongBody: Got = { status: 200, headers, body }
// @ts-expect-error a number where the id is an int64
export const wrongCall = getPlant({ ...call, id: 1 })
