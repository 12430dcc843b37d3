import type { ApiContent, ApiSchema, ListedOperation, Resolve } from './document.ts'
import { buildOperation } from './operation.ts'
import { buildTryIt } from './try-it.ts'

/** The section of each operation, by its id. */
export function buildOperations(
  operations: readonly ListedOperation[],
  resolve: Resolve,
  token: () => string,
): Map<string, HTMLElement> {
  return new Map(
    operations.map((operation) => {
      const content = Object.entries(operation.requestBody?.content ?? {})
      const bodies = new Map(content.map(([type, body]) => [type, toExample(body, resolve)]))
      const success = resolve(operation.responses[200] ?? { description: '' }).value
      const answers = Object.keys(success.content ?? {})
      const tryIt = buildTryIt({ operation, bodies, answers, token })
      return [operation.operationId, buildOperation(operation, resolve, tryIt)]
    }),
  )
}

/** A body to start with: the example of its media type, or one made of the examples of a shape. */
function toExample({ example, schema }: ApiContent, resolve: Resolve): string {
  if (example !== undefined) return example
  const { properties = {} } = resolve<ApiSchema>(schema).value
  const members = Object.entries(properties).map(([name, member]) => {
    const [first] = resolve<ApiSchema>(member).value.examples ?? []
    return `${JSON.stringify(name)}: ${JSON.stringify(first)}`
  })
  return `{ ${members.join(', ')} }`
}
