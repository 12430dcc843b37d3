/** What must not compile. `npm run check` fails when one of these lines does. */
import type { Operation } from '../../src/contract/operation.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { NewPlant } from '../../src/contract/shapes.ts'
import type { handlers as allHandlers } from '../../src/http/handlers.ts'

type Handlers = typeof allHandlers

declare const operation: Omit<Operation, 'scope'>
declare const handlers: Handlers
const { createPlant, getPlant, ...others } = handlers
declare const call: Parameters<typeof getPlant>[0]

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

// @ts-expect-error a number where the id is an int64
export const wrongCall = getPlant({ ...call, id: 1 })

export const withoutTag: NewPlant = { id: 1n, name: '' }
// @ts-expect-error a member that is required is missing
export const withoutName: NewPlant = { id: 1n }
// @ts-expect-error an id that is not exact
export const inexact: NewPlant = { id: 1, name: '' }
