/** What a token may allow. */
export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]
