import type { Components, Json } from './openapi-components.ts'
import { webhookAnswers, webhookHeaders, webhooks } from './webhooks.ts'

/** Every webhook, under the value of its `Plant-Event`. */
export function buildWebhooks({ referToShape }: Components): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(webhooks).map(([type, { summary, description, body }]) => [
      type,
      {
        post: {
          operationId: toOperationId(type),
          tags: ['webhooks'],
          summary,
          description,
          security: [],
          parameters: Object.entries(webhookHeaders).map(([name, header]) => ({
            name,
            in: 'header',
            required: true,
            ...header,
            ...(name === 'Plant-Event' && { schema: { ...header.schema, const: type } }),
          })),
          requestBody: {
            required: true,
            content: { 'application/json': { schema: referToShape(body) } },
          },
          responses: Object.fromEntries(
            Object.entries(webhookAnswers).map(([status, description]) => [
              status,
              { description },
            ]),
          ),
        },
      },
    ]),
  )
}

/** For example `plantCreated`. */
function toOperationId(type: string): string {
  return type.replace(/\.(\w)/, (_, letter: string) => letter.toUpperCase())
}
