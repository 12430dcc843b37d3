/** The permissions that a token can have. */
export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]
